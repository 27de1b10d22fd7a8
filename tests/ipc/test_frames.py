from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memkit.ipc import client

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
    "message",
    [{"a": float("nan")}, {"a": float("inf")}, {"a": {1, 2}}, {"a": b"bytes"}, nested(100_000)],
    ids=["nan", "inf", "set", "bytes", "nested"],
)
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
