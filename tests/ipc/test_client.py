from __future__ import annotations

import asyncio
import socket
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import memkit
from memkit.errors import MemkitError
from memkit.files import make_private_directory
from memkit.ipc import address, client
from tests.service.peers import PATIENCE_SECONDS, read_all, read_frame, scripted, serving

SOON = 0.2
"""A deadline that passes while the test waits for it."""


def ask(home, operation="echo", seconds=PATIENCE_SECONDS, **arguments):
    return client.request(home, operation, arguments, seconds)


def reason_of(home, seconds=PATIENCE_SECONDS):
    with pytest.raises(client.ServiceUnavailable) as caught:
        ask(home, seconds=seconds)
    message = str(caught.value)
    assert message and "\n" not in message
    assert isinstance(caught.value, MemkitError)
    return caught.value.reason


@pytest.mark.usefixtures("any_transport")
def test_a_request_is_answered(home):
    with serving(home):
        assert ask(home, text="é 漢 \ud800 \x00") == {"echo": {"text": "é 漢 \ud800 \x00"}}
        text = "x" * (client.MAX_REQUEST_BYTES - 1000)
        assert ask(home, text=text) == {"echo": {"text": text}}
        for seconds in (0, -1):  # no time at all is late
            assert reason_of(home, seconds=seconds) == "late"


@pytest.mark.usefixtures("any_transport")
def test_a_request_has_version_and_deadline(home):
    seen = []
    with scripted(home, lambda connection: seen.append(read_frame(connection))):
        assert reason_of(home) == "broken"
    (message,) = seen
    assert message["protocol"] == client.PROTOCOL
    assert message["version"] == memkit.__version__
    assert message["operation"] == "echo"
    assert 0 < message["deadline"] <= PATIENCE_SECONDS
    assert ("token" in message) == (not address.uses_unix_sockets())


@pytest.mark.usefixtures("any_transport")
def test_nobody_listens(home):
    assert reason_of(home) == "absent"
    address.listen(home)[0].close()
    assert reason_of(home) == "absent"


def test_a_directory_of_someone_else_is_not_used(home):
    make_private_directory(home.run)
    path = Path(home.root, "open", "service.sock")
    path.parent.mkdir()
    path.parent.chmod(0o777)
    Path(home.service_token).write_text(f'{{"directory": "{path.parent}"}}')
    with socket.socket(socket.AF_UNIX) as hostile:
        hostile.bind(str(path))
        hostile.listen()
        assert reason_of(home) == "broken"


def reply(**fields):
    """A script that answers with the request's id and `fields`."""

    def script(connection):
        identity = read_frame(connection)["id"]
        connection.sendall(client.encode_frame({"id": identity, **fields}))

    return script


def reply_bytes(data):
    def script(connection):
        read_frame(connection)
        connection.sendall(data)

    return script


def test_malformed_replies_and_errors(home):
    for script in (
        lambda connection: None, reply_bytes(b""), reply_bytes(b"\0\0"), reply_bytes(b"\0\0\0\x10{}"),
        reply_bytes(b"\xff\xff\xff\xff"), reply_bytes((client.MAX_REPLY_BYTES + 1).to_bytes(4, "big")),
        reply_bytes(b"\0\0\0\0"), reply_bytes(b"\0\0\0\x02[]"), reply_bytes(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
        reply_bytes(client.encode_frame({"id": "another", "result": {}})), reply(), reply(result=[]), reply(result=None),
        reply(error="text"), reply(error={"kind": "failed"}), reply(error={"kind": 1, "message": "text"}),
        reply(error={"kind": "token", "message": "wrong"}),
    ):  # fmt: skip
        with scripted(home, script):
            assert reason_of(home) == "broken"
    no = reply(error={"kind": "failed", "message": "no such day"})
    with scripted(home, no), pytest.raises(client.RequestRefused) as caught:
        ask(home)
    assert (caught.value.kind, str(caught.value)) == ("failed", "no such day")
    assert isinstance(caught.value, MemkitError)


def test_a_request_that_cannot_be_encoded_is_not_sent(home):
    for value, kind in (("x" * client.MAX_REQUEST_BYTES, "large"), (float("nan"), "malformed"), ({1}, "malformed")):
        received = []
        script = lambda connection, received=received: received.append(read_all(connection))  # noqa: E731
        with scripted(home, script), pytest.raises(client.RequestRefused) as caught:
            ask(home, value=value)
        assert caught.value.kind == kind
        assert received == [b""]


@pytest.fixture
def hung(monkeypatch):
    """Any deadline is long enough to tell that a service hangs."""
    monkeypatch.setattr(client, "PING_AFTER_SECONDS", SOON / 4)
    monkeypatch.setattr(client.is_alive, "__defaults__", (SOON,))


def test_a_busy_service_is_left_alone(home):
    """A prompt waits a tenth of a second; that the service has no time for it says nothing."""
    with scripted(home, lambda connection: read_all(connection)):
        assert reason_of(home, seconds=SOON) == "late"


def test_a_service_that_answers_no_ping_is_not_waited_for(home, hung):
    """Whoever has an hour does not spend it."""
    asked = []

    def say_nothing(connection):
        asked.append(read_frame(connection)["operation"])
        read_all(connection)

    with scripted(home, say_nothing, say_nothing):
        assert reason_of(home, seconds=3600) == "hung"
    assert asked == ["echo", "ping"]


@pytest.mark.parametrize("knows_ping", [True, False])
def test_a_busy_service_is_waited_for(home, hung, knows_ping):
    """It answers each ping, and its reply comes late."""
    signs = []
    asked_twice = asyncio.Event()

    async def work_long(request):
        if request.operation == "echo":
            await asked_twice.wait()
            return {"done": True}
        signs.append(request.operation)
        if len(signs) == 2:
            asked_twice.set()
        if not knows_ping:
            raise MemkitError("the service knows no operation 'ping'")
        return {}

    with serving(home, work_long):
        assert ask(home, seconds=3600) == {"done": True}
    assert set(signs) == {"ping"}


@pytest.mark.parametrize(
    ("theirs", "operations"), [({"version": "0.0.9"}, ["drain"]), ({"version": "99.0"}, []), ({}, [])],
    ids=["older", "newer", "malformed"],
)  # fmt: skip
def test_only_an_older_service_is_asked_to_drain(home, theirs, operations):
    """So two versions never end each other's service in turn."""
    later = []
    scripts = [reply(error={"kind": "version", "message": "text", **theirs})]
    scripts += [lambda connection: later.append(read_frame(connection)["operation"])] * len(operations)
    with scripted(home, *scripts):
        assert reason_of(home) == "version"
    assert later == operations


def test_a_service_that_is_gone_before_it_is_asked_to_drain(home):
    def last_words(connection):
        address.remove(home)
        reply(error={"kind": "version", "message": "text", "version": "0.0.9"})(connection)

    with scripted(home, last_words):
        assert reason_of(home) == "version"


@pytest.mark.parametrize("head", [b"", (client.MAX_REPLY_BYTES).to_bytes(4, "big")], ids=["header", "body"])
def test_a_reply_that_drips_does_not_extend_the_deadline(home, hung, head):
    """The service sends byte after byte for as long as the client listens."""
    client_left = threading.Event()

    def drip(connection):
        read_frame(connection)
        try:
            connection.sendall(head)
            for _ in range(3 if not head else client.MAX_REPLY_BYTES):
                connection.sendall(b" ")
            read_all(connection)
        except ConnectionError:
            pass
        client_left.set()

    with scripted(home, drip, lambda connection: None):
        assert reason_of(home, seconds=SOON) == "late"
        assert client_left.wait(PATIENCE_SECONDS)


def test_a_service_that_does_not_read_does_not_extend_the_deadline(home, hung):
    done = threading.Event()
    with scripted(home, lambda connection: done.wait(PATIENCE_SECONDS), lambda connection: None):
        with pytest.raises(client.ServiceUnavailable) as caught:
            client.request(home, "echo", {"text": "x" * 900_000}, SOON)
        done.set()
    assert caught.value.reason == "hung"


def test_a_service_that_does_not_accept_is_late(home):
    listening, _ = address.listen(home)
    with listening:
        listening.listen(0)
        waiting = address.connect(home, PATIENCE_SECONDS)[0]
        with waiting:
            assert reason_of(home, seconds=SOON) == "late"


@pytest.mark.usefixtures("any_transport")
def test_a_notification_is_not_waited_for(home):
    seen = []
    read = threading.Event()

    def script(connection):
        read.wait(PATIENCE_SECONDS)  # until then `notify` has returned
        seen.append(read_frame(connection))

    with scripted(home, script):
        client.notify(home, "look", {"a": 1}, PATIENCE_SECONDS)
        read.set()
    assert (seen[0]["operation"], seen[0]["arguments"], seen[0]["deadline"]) == ("look", {"a": 1}, None)
    with pytest.raises(client.ServiceUnavailable) as caught:
        client.notify(home, "look", {}, PATIENCE_SECONDS)
    assert caught.value.reason == "absent"


# Frames


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
messages = st.dictionaries(st.text(), values, max_size=5)


@given(messages)
def test_decode_reverses_encode(message):
    frame = client.encode_frame(message)
    length = client.body_length(frame[: client.HEADER_BYTES], client.MAX_REPLY_BYTES)
    assert length == len(frame) - client.HEADER_BYTES
    assert client.decode_frame(frame[client.HEADER_BYTES :]) == message


@given(st.binary(max_size=200))
def test_any_bytes_are_an_object_or_a_frame_error(data):
    try:
        assert isinstance(client.decode_frame(data), dict)
    except client.FrameError:
        pass


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"null", b"[1]", b'"text"', b"\xff\xfe{}", b'{"a": "\xc3"}', b'{"a": NaN}',
        b'{"a": Infinity}', b'{"a": -Infinity}', b'{"a": 1e999}', b'{"a": -1e999}', b"{} {}",
        b'{"a":' * 100_000, b"[" * 500_000 + b"]" * 500_000, '{"a": 1}'.encode("utf-16"),
    ],
    ids=lambda body: repr(body[:20]),
)
def test_anything_but_a_json_object_is_refused(body):
    with pytest.raises(client.FrameError):
        client.decode_frame(body)


def nested(depth: int) -> dict[str, object]:
    message: dict[str, object] = {}
    for _ in range(depth):
        message = {"a": message}
    return message


@pytest.mark.parametrize(
    "message", [{"a": float("nan")}, {"a": float("inf")}, {"a": {1, 2}}, {"a": b"bytes"}, nested(100_000)],
    ids=["nan", "inf", "set", "bytes", "nested"],
)  # fmt: skip
def test_values_that_json_cannot_hold_are_not_encoded(message):
    with pytest.raises(client.FrameError) as caught:
        client.encode_frame(message)
    assert not isinstance(caught.value, client.FrameTooLargeError)


def test_limits():
    message = {"a": "x" * 100}
    size = len(client.encode_frame(message)) - client.HEADER_BYTES
    header = size.to_bytes(4, "big")
    assert client.encode_frame(message, size)[:4] == header
    assert client.body_length(header, size) == size
    with pytest.raises(client.FrameTooLargeError):
        client.encode_frame(message, size - 1)
    with pytest.raises(client.FrameTooLargeError):
        client.body_length(header, size - 1)
    with pytest.raises(client.FrameTooLargeError):
        client.encode_frame({"a": "x" * client.MAX_REPLY_BYTES})
