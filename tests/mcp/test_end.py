"""The process ends when its client does, whatever it is doing."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from memkit.index import index_lock
from memkit.mcp.server import _Calls, _Input, _Output
from tests.mcp.talking import COMMAND, encoded, initialize
from tests.memory import Memory, make_memory
from tests.serve.running import environment

INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
PING = {"jsonrpc": "2.0", "id": "p", "method": "ping"}
PATIENCE = 120.0


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return make_memory(tmp_path, {})


@contextmanager
def server(memory: Memory) -> Iterator[subprocess.Popen[bytes]]:
    """A server that has said hello, and serves by now."""
    process = subprocess.Popen(
        [sys.executable, *COMMAND], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        cwd=memory.project.root, env=environment(memory),
    )  # fmt: skip
    try:
        send(process, initialize(), INITIALIZED, PING)
        assert [reply(process)["id"], reply(process)["id"]] == [0, "p"]
        yield process
    finally:
        process.kill()
        process.communicate()


def send(process: subprocess.Popen[bytes], *messages: object) -> None:
    process.stdin.write(encoded(*messages))
    process.stdin.flush()


def reply(process: subprocess.Popen[bytes]) -> Any:
    return json.loads(process.stdout.readline())


def close(process: subprocess.Popen[bytes]) -> None:
    process.stdin.close()
    process.stdin = None


def wait_for_lock(process: subprocess.Popen[bytes]) -> None:
    """Return when a call waits for another process."""
    assert process.stderr is not None
    assert any(b"waiting for another memkit process" in line for line in process.stderr)


def called(name: str, **arguments: Any) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": name, "method": "tools/call", "params": params}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signal")
def test_an_interrupt_ends_it_while_stdin_is_open(memory: Memory) -> None:
    with server(memory) as process:
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 130


def test_a_client_that_never_reads(memory: Memory) -> None:
    with server(memory) as process:
        listing = ({"jsonrpc": "2.0", "id": n, "method": "tools/list"} for n in range(100))
        send(process, *listing)  # the replies are more than a pipe holds
        close(process)
        assert process.wait(PATIENCE) == 0


def test_calls_that_wait_for_a_lock(memory: Memory) -> None:
    """More calls than there are threads wait for it; the server still answers, and ends with its client."""
    with server(memory) as process:
        send(process, called("memory_remember", text="Staging moves to 7444."))
        name = reply(process)["result"]["content"][0]["text"].removeprefix("Remembered as ").rstrip(".")
        with index_lock(memory.home, PATIENCE, print):
            forget = called("memory_forget", ids=[name], dry_run=False)
            send(process, *({**forget, "id": n} for n in range(60)))
            wait_for_lock(process)
            send(process, PING)
            assert reply(process)["id"] == "p"
            close(process)
            assert process.wait(PATIENCE) == 0


def test_the_end_waits_for_running_calls() -> None:
    calls, started, may_end = _Calls(), threading.Event(), threading.Event()
    done: list[str] = []

    def write() -> None:
        started.set()
        may_end.wait(PATIENCE)
        done.append("written")

    thread = threading.Thread(target=calls.run, args=(write,))
    thread.start()
    assert started.wait(PATIENCE)
    calls.wait(0.0)
    assert not done
    may_end.set()
    calls.wait(PATIENCE)
    assert done
    thread.join()



def test_a_client_whose_end_of_stdout_is_closed(memory: Memory) -> None:
    with server(memory) as process:
        process.stdout.close()
        process.stdout = None
        send(process, PING)
        close(process)
        assert process.wait(PATIENCE) == 0


def test_the_lines_end_when_all_requests_are_answered() -> None:
    """The SDK cancels the requests that are under way when they end."""
    read: list[str] = []

    async def read_all(source: Any) -> None:
        async for line in source:
            read.append(json.loads(line)["id"])
        read.append("end")

    async def check() -> None:
        replies = _Output(io.BytesIO())
        requests = [encoded({"jsonrpc": "2.0", "id": name, "method": "ping"}) for name in "ab"]
        source = _Input(io.BytesIO(b"".join(requests)), replies)
        source.read()
        async with anyio.create_task_group() as group:
            group.start_soon(read_all, source)
            for name in "ba":
                while len(read) < 2:  # the end of the lines is read in a thread
                    await anyio.to_thread.run_sync(lambda: None)
                await anyio.wait_all_tasks_blocked()
                assert read == ["a", "b"]
                await replies.write(json.dumps({"jsonrpc": "2.0", "id": name, "result": {}}))
        assert read == ["a", "b", "end"]

    anyio.run(check)
