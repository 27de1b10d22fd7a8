from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import memkit
from memkit.files import PRIVATE_DIRECTORY
from memkit.ipc import address, client
from memkit.service import listener
from tests.service.peers import PATIENCE_SECONDS as PATIENT
from tests.service.peers import (
    answer,
    connected,
    exchange,
    good_message,
    operate,
    read_all,
    read_frame,
    serving,
)


def refused(home, operation):
    with pytest.raises(client.RequestRefused) as caught:
        client.request(home, operation, {}, PATIENT)
    return caught.value


def test_any_other_failure_is_logged_and_reported_without_details(home, caplog):
    failures = {"break": "ZeroDivisionError", "time out": "RuntimeError", "list": "TypeError", "nan": "FrameError"}
    with serving(home):
        error = refused(home, "fail")
        assert (error.kind, str(error)) == ("MemkitError", "the index is gone: run `memkit index`")
        assert refused(home, "large").kind == "large"
        for operation, name in failures.items():
            caplog.clear()
            error = refused(home, operation)
            assert error.kind == "internal"
            assert name in str(error)
            assert "secret" not in str(error) and "\n" not in str(error) and "Traceback" not in str(error)
            (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
            assert record.exc_info and record.exc_info[0].__name__ == name
        assert client.request(home, "echo", {}, PATIENT) == {"echo": {}}


@pytest.mark.parametrize("deadline", [0, -5, 0.05])
def test_an_operation_is_cancelled_at_the_deadline(home, deadline):
    cancelled = threading.Event()

    async def wait(request):
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    with serving(home, wait):
        assert answer(home, deadline=deadline)["error"]["kind"] == "late"
        assert deadline <= 0 or cancelled.wait(PATIENT)


def test_a_notification_has_no_deadline_and_needs_no_listener(home):
    seen = []
    done = threading.Event()

    async def note(request):
        seen.append(request)
        done.set()
        return {}

    with serving(home, note):
        client.notify(home, "look", {"a": 1}, PATIENT)
        assert done.wait(PATIENT)
    assert seen[0].deadline == float("inf")
    assert (seen[0].operation, seen[0].arguments) == ("look", {"a": 1})


def test_fields_of_the_wrong_type_and_other_versions(home):
    with serving(home) as server:
        for changes in (
            {"id": None}, {"id": 1}, {"id": "x" * 65}, {"operation": None}, {"operation": ["echo"]}, {"arguments": None},
            {"arguments": [1]}, {"deadline": "1"}, {"deadline": True}, {"deadline": {}}, {"deadline": 10**400},
        ):  # fmt: skip
            reply = answer(home, **changes)
            assert reply["error"]["kind"] == "malformed", changes
            assert reply["id"] == ("" if "id" in changes else "1")
        assert server.listener.requests == 0
    # Another one is refused, but a client that is older and speaks the same protocol is answered.
    with serving(home):
        for changes in (
            {"version": "99.0.0"}, {"version": None}, {"version": "9" * 999}, {"protocol": 2}, {"protocol": "1"},
        ):  # fmt: skip
            error = answer(home, **changes)["error"]
            assert (error["kind"], error["version"]) == ("version", memkit.__version__)
            assert answer(home, **changes, arguments=None)["error"]["kind"] == "version"
        for version in ("0.0.9", "0", "", "0.0.x"):
            assert "error" not in answer(home, version=version)


def test_operations_that_any_version_may_ask_for(home):
    async def name(request):
        return {"operation": request.operation}

    with serving(home, name, version="9"):
        for operation in ("drain", "status"):
            assert answer(home, operation=operation, protocol=7)["result"] == {"operation": operation}


def test_a_client_of_another_version_makes_the_service_drain(home):
    """The whole way: the service of before ends because a newer client came."""
    servers = []

    async def drain(request):
        servers[0].listener.stop()
        return {}

    with serving(home, drain, version="0.0.9") as server:
        servers.append(server)
        with pytest.raises(client.ServiceUnavailable) as caught:
            client.request(home, "echo", {}, PATIENT)
        assert caught.value.reason == "version"
        server.ended()
    with pytest.raises(client.ServiceUnavailable) as caught:
        client.request(home, "echo", {}, PATIENT)
    assert caught.value.reason == "absent"


@pytest.mark.usefixtures("over_tcp")
def test_no_tcp_request_is_served_without_the_token(home):
    with serving(home) as server:
        _, token = address.connect(home, PATIENT)
        wrong = ["", token[:-1], token + "0", token.upper() + "é", "\ud800", 1, None, [token]]
        for operation in ("echo", "drain", "status"):
            for value in wrong:
                assert answer(home, operation=operation, token=value)["error"]["kind"] == "token"
            assert answer(home, operation=operation)["error"]["kind"] == "token"
        assert server.listener.requests == 0
        assert answer(home, token=token)["result"] == {"echo": {"a": 1}}
        # A client with an old token gets no answer.
        file = Path(home.service_token)
        file.write_text(json.dumps({**json.loads(file.read_text()), "token": "0" * 64}))
        with pytest.raises(client.ServiceUnavailable) as caught:
            client.request(home, "echo", {}, PATIENT)
    assert caught.value.reason == "broken"


def first_byte_as(user: int, path: str) -> int:
    """What a child of `user` gets: 0 the connection is closed, 1 an answer, 2 it cannot connect."""
    frame = client.encode_frame(good_message())
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status = 3
    try:
        os.setgroups([])
        os.setuid(user)
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(PATIENT)
            status = 2
            connection.connect(path)
            status = 0
            connection.sendall(frame)
            status = 1 if connection.recv(1) else 0
    except OSError:
        pass
    finally:
        os._exit(status)


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_connections_of_another_user_are_closed(home, caplog):
    if os.getuid() != 0 or not hasattr(socket, "SO_PEERCRED"):
        pytest.skip("needs root, and a system that names the peer")
    with serving(home) as server:
        for path, mode in [(home.root, 0o711), (home.run, 0o711), (home.service_socket, 0o666)]:
            os.chmod(path, mode)
        assert first_byte_as(0, home.service_socket) == 1
        assert server.listener.requests == 1
        assert first_byte_as(65534, home.service_socket) == 0
        assert server.listener.requests == 1
        assert answer(home)["result"] == {"echo": {"a": 1}}
    assert "another user" in caplog.text
    os.chmod(home.root, PRIVATE_DIRECTORY)


def test_stopping_finishes_requests_in_progress_and_closes_other_connections(home):
    started = threading.Event()
    release: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def hold(request):
        event = asyncio.Event()
        release.append((asyncio.get_running_loop(), event))
        started.set()
        await event.wait()
        return {"finished": True}

    with serving(home, hold) as server, ThreadPoolExecutor() as threads, connected(home) as half:
        half.sendall(b"\0\0")
        answered = threads.submit(client.request, home, "hold", {}, PATIENT)
        assert started.wait(PATIENT)
        server.stop()
        assert read_all(half) == b""
        with pytest.raises(client.ServiceUnavailable):
            client.request(home, "hold", {}, PATIENT)
        loop, event = release[0]
        loop.call_soon_threadsafe(event.set)
        assert answered.result() == {"finished": True}
        server.ended()
    assert len(release) == 1


def test_an_endless_request_does_not_prevent_the_exit(home, monkeypatch, caplog):
    monkeypatch.setattr(listener, "GRACE_SECONDS", 0.05)
    started = threading.Event()

    async def hold(request):
        started.set()
        return await operate(request)

    with serving(home, hold) as server, connected(home) as connection:
        connection.sendall(client.encode_frame(good_message(operation="wait")))
        assert started.wait(PATIENT)
        server.stop()
        server.ended()
        assert read_all(connection) == b""
    assert "was not finished" in caplog.text


def test_stopping_before_anything_came(home, caplog):
    with serving(home) as server:
        assert exchange(home, b"") == b""
        assert caplog.records == []
        server.stop()
        server.stop()
        server.ended()
    with socket.socket(socket.AF_UNIX) as not_listening:  # which cannot accept, and ends the service
        server = listener.Listener(not_listening, None, operate, version="1")
        with pytest.raises(OSError):
            asyncio.run(server.run())


def test_no_more_connections_are_served_at_once_than_allowed(home, monkeypatch):
    monkeypatch.setattr(listener, "MAX_CONNECTIONS", 3)
    running, counts = set(), []

    async def count(request):
        running.add(asyncio.current_task())
        counts.append(len(running))
        await asyncio.sleep(0.001)
        running.remove(asyncio.current_task())
        return {}

    with serving(home, count) as server, ThreadPoolExecutor(20) as threads:
        idle = [connected(home), connected(home)]
        replies = [threads.submit(client.request, home, "count", {}, PATIENT) for _ in range(40)]
        assert [reply.result() for reply in replies] == [{}] * 40
        for connection in idle:
            connection.close()
        assert server.listener.requests == 40
    assert max(counts) <= 3
    assert not server.listener._connections


def test_no_more_connections_wait_than_allowed(home, monkeypatch):
    monkeypatch.setattr(listener, "MAX_CONNECTIONS", 1)
    monkeypatch.setattr(listener, "BACKLOG", 1)
    with serving(home):
        served, waiting = connected(home), connected(home)
        with connected(home) as third:
            assert read_all(third) == b""
        served.close()
        waiting.sendall(client.encode_frame(good_message()))
        assert read_frame(waiting)["result"] == {"echo": {"a": 1}}
        waiting.close()
        assert client.request(home, "echo", {}, PATIENT) == {"echo": {}}


def test_waiting_connections_get_their_turn_when_slow_ones_are_closed(home, monkeypatch):
    monkeypatch.setattr(listener, "MAX_CONNECTIONS", 2)
    monkeypatch.setattr(listener, "REQUEST_SECONDS", 0.1)
    with serving(home):
        slow = [connected(home) for _ in range(6)]
        assert client.request(home, "echo", {}, PATIENT) == {"echo": {}}
        assert [read_all(connection) for connection in slow] == [b""] * 6
        for connection in slow:
            connection.close()


def test_a_client_that_does_not_read_its_reply_is_closed(home, monkeypatch):
    monkeypatch.setattr(listener, "REPLY_SECONDS", 0.1)
    monkeypatch.setattr(listener, "MAX_CONNECTIONS", 1)

    async def much(request):
        return {"text": "x" * 8_000_000} if request.operation == "much" else {}

    with serving(home, much), connected(home) as connection:
        connection.sendall(client.encode_frame(good_message(operation="much")))
        assert client.request(home, "echo", {}, PATIENT) == {}  # has the place of the other
        assert len(read_all(connection)) < 8_000_000


def test_without_descriptors_the_service_waits_for_one(home, monkeypatch, caplog):
    monkeypatch.setattr(asyncio.constants, "ACCEPT_RETRY_DELAY", 0.01)
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    class Restore(logging.Handler):
        def emit(self, record):
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    async def main():
        listening, token = address.listen(home)
        server = listener.Listener(listening, token, operate, version=good_message()["version"])
        with connected(home) as connection:
            connection.sendall(client.encode_frame(good_message()))
            lowest_free = os.dup(listening.fileno())
            os.close(lowest_free)
            resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, hard))
            running = asyncio.create_task(server.run())
            reply = await asyncio.to_thread(read_frame, connection)
            server.stop()
            await running
        return reply

    handler = Restore()
    logging.getLogger("asyncio").addHandler(handler)
    try:
        reply = asyncio.run(main())
    finally:
        logging.getLogger("asyncio").removeHandler(handler)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert reply["result"] == {"echo": {"a": 1}}
    assert "out of system resource" in caplog.text
