"""The reply to the first message, before the SDK is imported."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import mcp_types
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import version

from memkit.mcp.handshake import INSTRUCTIONS, STATELESS, VERSIONS, reply_to
from tests.ci import sized
from tests.mcp.talking import encoded, initialize, lines
from tests.memory import Memory, make_memory
from tests.serve.running import REPOSITORY

INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
PING = {"jsonrpc": "2.0", "id": "p", "method": "ping"}
LIST = {"jsonrpc": "2.0", "id": "l", "method": "tools/list"}


@pytest.fixture
def memory(tmp_path: Any) -> Memory:
    return make_memory(tmp_path, {})


@pytest.mark.parametrize("asked", sized([VERSIONS[-1]], [*VERSIONS[-2:], "tomorrow"], [*VERSIONS, "1999-01-01", "tomorrow"]))
def test_the_reply_is_what_the_sdk_would_say(asked: str, memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    found = reply_to(encoded(initialize(asked)))
    assert found is not None
    name, line = found
    own = json.loads(line)
    assert name == own["id"] == 0
    mcp_types.InitializeResult.model_validate(own["result"])
    (theirs,) = _said_by_the_sdk(memory, initialize(asked))
    assert own == theirs


def test_the_tools_are_listed_as_the_sdk_would_list_them(memory: Memory) -> None:
    assert VERSIONS == version.HANDSHAKE_PROTOCOL_VERSIONS
    assert len(INSTRUCTIONS.encode()) <= 2048
    assert reply_to(b"\xef\xbb\xbf" + encoded(initialize())) is None  # the SDK does not read a mark of the encoding
    program = (
        "import sys, memkit.mcp.server; from memkit.mcp.handshake import reply_to; sys.stdout.buffer.write("
        f"reply_to({encoded(LIST)!r})[1]); sys.exit('mcp' in sys.modules or 'memkit.memory' in sys.modules)"
    )
    own = json.loads(subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, cwd=REPOSITORY).stdout)
    assert [own] == _said_by_the_sdk(memory, initialize(), LIST)[1:]
    said, status = lines(memory, encoded(initialize(), INITIALIZED, LIST, PING))
    assert [one["id"] for one in said] == [0, "l", "p"]
    assert (said[1], status) == (own, 0)


def stateless(method: str) -> dict[str, Any]:
    meta = {"protocolVersion": STATELESS, "clientCapabilities": {}, "clientInfo": {"name": "a client", "version": "1"}}
    return {**PING, "method": method, "params": {"_meta": {f"io.modelcontextprotocol/{name}": value for name, value in meta.items()}}}


@pytest.mark.parametrize("method", ["server/discover", "tools/list"])
def test_a_request_that_names_its_revision(method: str, memory: Memory) -> None:
    request = stateless(method)
    found = reply_to(encoded(request))
    assert found is not None
    assert [json.loads(found[1])] == _said_by_the_sdk(memory, request)
    for part in ({"cursor": "x"}, {"_meta": {**request["params"]["_meta"], "io.modelcontextprotocol/protocolVersion": "2030-01-01"}}, {"_meta": {}}):
        assert reply_to(encoded({**request, "params": {**request["params"], **part}})) is None


def test_a_client_that_does_not_wait_for_the_answer(memory: Memory) -> None:
    """Claude Code asks which revisions there are, and says hello as before if that takes too long."""
    said, status = lines(memory, encoded(stateless("server/discover"), initialize(), INITIALIZED, LIST, PING))
    assert ([one["id"] for one in said], status) == (["p", 0, "l", "p"], 0)
    assert not any("error" in one for one in said)


def test_other_requests_do_not_delay_the_list(memory: Memory) -> None:
    """They need the SDK, which takes a second to import."""
    others = ({"jsonrpc": "2.0", "id": name, "method": f"{name}/list"} for name in ("resources", "prompts"))
    said, _ = lines(memory, encoded(initialize(), INITIALIZED, *others, LIST))
    assert [one["id"] for one in said[:2]] == [0, "l"]


def _said_by_the_sdk(memory: Memory, *requests: Any) -> list[Any]:
    """What it answers if it has to answer everything."""
    program = "from memkit.mcp import server; server.MOST_EARLY = 0; from memkit.cli import main; main()"
    said, status = lines(memory, encoded(*requests), ["-c", program, "mcp"])
    assert status == 0
    return said


def test_what_the_sdk_refuses_is_not_answered_before(memory: Memory) -> None:
    params = initialize()["params"]
    for part in (
        {"jsonrpc": "1.0"}, {"id": "\ud800"}, {"params": {"protocolVersion": "2025-11-25", "capabilities": {}}},
        {"params": {**params, "capabilities": 5}}, {"params": {**params, "clientInfo": {"name": 5, "version": "1"}}},
    ):  # fmt: skip
        sent = encoded({**initialize(), **part})
        assert reply_to(sent) is None
        said, _ = lines(memory, sent)
        assert all("error" in one for one in said), part


@given(st.binary() | st.text().map(str.encode) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda one: st.lists(one) | st.dictionaries(
        st.sampled_from(["id", "method", "params", "protocolVersion"]), one | st.just("initialize"))
).map(lambda one: json.dumps(one).encode()))  # fmt: skip
def test_any_line_is_a_request_or_none(line: bytes) -> None:
    found = reply_to(line)
    assert found is None or json.loads(found[1])["jsonrpc"] == "2.0"


def test_nonsense_ends_quietly(memory: Memory) -> None:
    for sent in (b"", b"\nnonsense\n" + b"[" * 100_000 + b"\n\xff\xfe\n"):
        _, status = lines(memory, sent)
        assert status == 0


def test_a_missing_package_is_said_before_the_handshake(memory: Memory, tmp_path: Any) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text(
        "import importlib.util as u\nreal = u.find_spec\n"
        "u.find_spec = lambda name, *rest: None if name == 'mcp' else real(name, *rest)\n"
    )
    said, status = lines(memory, encoded(initialize()), PYTHONPATH=f"{hidden}:{REPOSITORY}")
    assert (said, status) == ([], 1)
