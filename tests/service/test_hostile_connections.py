"""Hostile connections: others are served meanwhile, and no resources leak."""

from __future__ import annotations

import gc
import itertools
import json
import os
import random
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memkit.ipc import client
from memkit.paths import Home
from memkit.service import listener
from tests.ci import examples
from tests.service.peers import (
    PATIENCE_SECONDS,
    connected,
    exchange,
    good_message,
    read_all,
    serving,
)

LIMIT = client.MAX_REQUEST_BYTES


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


GOOD = client.encode_frame(good_message())
WRONG = {
    "half a length": b"\0\0\0", "only a length": b"\0\0\0\x10", "half a body": GOOD[:-1],
    "no body": framed(b""), "one byte too many for a frame": (LIMIT + 1).to_bytes(4, "big") + b"x" * 100,
    "the longest length": b"\xff\xff\xff\xff" + b"x" * 100_000, "zeros": bytes(5000),
    "an HTTP request": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a TLS handshake": bytes.fromhex("16030100f8010000f40303") + bytes(200),
    "a pickle": framed(b"\x80\x04cos\nsystem\n(S'true'\ntR."), "no UTF-8": framed(b'{"id": "\xff\xfe"}'),
    "an array": framed(b"[]"), "a number": framed(b"1"), "null": framed(b"null"),
    "two objects": framed(b"{}{}"), "NaN": framed(GOOD[4:].replace(b"60.0", b"NaN")),
    "too large a number": framed(GOOD[4:].replace(b"60.0", b"1e999")), "deep arrays": framed(b"[" * LIMIT),
    "deep objects": framed(b'{"a":' * (LIMIT // 5)),
    "deep arguments": framed(GOOD[4:].replace(b'{"a":1}', b'{"a":' + b"[" * 200_000 + b"]" * 200_000 + b"}")),
    "a long number": framed(b'{"id": ' + b"9" * 100_000 + b"}"),
    "the largest frame, of rubbish": framed(b"\x00" * LIMIT), "an empty object": framed(b"{}"),
}  # fmt: skip

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=5,
)


@contextmanager
def well_behaved_client(home: Home) -> Iterator[None]:
    """Asks all the while, over and over, and fails if any answer is not the right one."""
    enough = threading.Event()
    asked_once = threading.Event()
    failures: list[BaseException] = []

    def ask() -> None:
        try:
            for number in itertools.count():
                reply = client.request(home, "echo", {"number": number}, PATIENCE_SECONDS)
                assert reply == {"echo": {"number": number}}
                asked_once.set()
                if enough.is_set():
                    break
        except BaseException as error:  # noqa: BLE001 - raised again below
            failures.append(error)
            asked_once.set()

    thread = threading.Thread(target=ask)
    thread.start()
    assert asked_once.wait(PATIENCE_SECONDS)
    try:
        yield
    finally:
        enough.set()
        thread.join(PATIENCE_SECONDS)
    assert not thread.is_alive()
    if failures:
        raise failures[0]


@pytest.fixture
def served(home: Home, any_transport: str) -> Iterator[Home]:
    with serving(home), well_behaved_client(home):
        yield home


def kind_of(reply: bytes) -> str:
    """The kind of the error that `reply` holds."""
    length = client.body_length(reply[:4], client.MAX_REPLY_BYTES)
    assert len(reply) == 4 + length
    message = client.decode_frame(reply[4:])["error"]
    assert "\n" not in message["message"] and "Traceback" not in message["message"]
    return str(message["kind"])


def test_a_malformed_request_gets_an_error_or_is_closed(served, caplog):
    for name, data in WRONG.items():
        reply = exchange(served, data)
        assert reply == b"" or kind_of(reply) in ("malformed", "token"), name
    assert not [record for record in caplog.records if record.exc_info]


READ_TO_THE_END = [
    name for name, data in WRONG.items() if len(data) <= 4 + int.from_bytes(data[:4], "big") <= 4 + LIMIT
]


def test_a_whole_malformed_frame_gets_an_error(home):
    with serving(home):
        for name in READ_TO_THE_END:
            assert kind_of(exchange(home, WRONG[name])) == "malformed", name
        for length in (LIMIT + 1, 2**32 - 1):  # refused before the body comes
            with connected(home) as connection:
                connection.sendall(length.to_bytes(4, "big"))
                assert kind_of(read_all(connection)) == "malformed"


@settings(
    max_examples=examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(
    st.one_of(
        st.binary(max_size=300),
        st.binary(max_size=300).map(framed),
        st.integers(0, len(GOOD)).map(lambda end: GOOD[:end]),
        st.tuples(st.integers(0, len(GOOD) - 1), st.binary(min_size=1, max_size=1)).map(
            lambda change: GOOD[: change[0]] + change[1] + GOOD[change[0] + 1 :]
        ),
    )
)
def test_any_bytes(served, data):
    reply = exchange(served, data)
    assert reply == b"" or client.decode_frame(reply[4:]).keys() <= {"id", "result", "error"}


@settings(
    max_examples=examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(st.sampled_from(sorted(good_message())), json_values)
def test_any_values_in_place_of_the_right_ones(served, field, value):
    message = {**good_message(), field: value}
    reply = client.decode_frame(exchange(served, framed(json.dumps(message).encode()))[4:])
    assert reply.keys() in ({"id", "result"}, {"id", "error"})


def test_slow_and_half_sent_requests_are_closed(served, monkeypatch):
    monkeypatch.setattr(listener, "REQUEST_SECONDS", 0.2)
    beginnings = [b"", b"\0", b"\0\0\0\x10", b"\0\0\0\x10{", GOOD[:-1]]
    open_ones = [connected(served) for _ in beginnings]
    for connection, data in zip(open_ones, beginnings, strict=True):
        connection.sendall(data)
    for connection in open_ones:
        assert read_all(connection) == b""  # the service closed it; we never did
        connection.close()


def test_a_request_sent_byte_by_byte_does_not_extend_its_time_limit(served, monkeypatch):
    monkeypatch.setattr(listener, "REQUEST_SECONDS", 0.2)
    with connected(served) as connection:
        connection.settimeout(PATIENCE_SECONDS)
        with pytest.raises(ConnectionError):
            connection.sendall(LIMIT.to_bytes(4, "big"))
            for _ in range(20_000):  # a byte between any two requests of a client with manners
                client.request(served, "echo", {}, PATIENCE_SECONDS)
                connection.sendall(b" ")


@pytest.mark.usefixtures("any_transport")
def test_no_descriptor_stays_open(home):
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("the system does not list open descriptors")
    choose = random.Random(1)
    gc.collect()  # earlier tests may have left connections
    before = len(os.listdir("/proc/self/fd"))
    with serving(home) as server, well_behaved_client(home):
        kept: list[socket.socket] = []
        for _ in range(200):
            data = choose.choice([*WRONG.values(), GOOD, b""])
            connection = connected(home)
            try:
                connection.sendall(data[: choose.choice([5, len(data)])])
            except ConnectionError:
                pass
            if choose.random() < 0.3:
                kept.append(connection)  # left open, half-sent, until the service stops
            else:
                connection.close()
    assert not server.listener._connections
    # A connection that the event loop was just accepting as it ended is closed when it is collected.
    gc.collect()
    for connection in kept:
        read_all(connection)
        connection.close()
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before
