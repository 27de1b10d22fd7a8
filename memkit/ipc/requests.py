"""What a request must be for the service to look at it."""

from __future__ import annotations

import hmac
import math
import time
from dataclasses import dataclass
from typing import Any

from memkit.errors import MemkitError
from memkit.ipc import frames
from memkit.state import release

OPEN_OPERATIONS = ("drain", "ping", "status")
"""What clients of every protocol and version may ask."""

MAX_ID_CHARACTERS = 64


class Refusal(Exception):
    """A request that is not handed on; the message is one line. `identity` is "" if unknown."""

    def __init__(self, identity: str, kind: str, message: str, version: str = "") -> None:
        """`version` is the service's, told where the client's is the reason."""
        super().__init__(message)
        self.identity = identity
        self.kind = kind
        self.version = version


class NotHereError(MemkitError):
    """Who asks does it better alone; the service can be asked other things."""


@dataclass(frozen=True)
class Request:
    """One request. `deadline` is in the time of `time.monotonic`, infinite if nobody waits."""

    id: str
    operation: str
    arguments: dict[str, Any]
    deadline: float


def parse_request(message: dict[str, Any], *, token: str | None, version: str) -> Request:
    """The request that `message` is; raises `Refusal`.

    `token` is the one it must carry, if any. `version` is the service's: an older client is answered too,
    if it speaks the same protocol. Otherwise two versions would end each other's service in turn.
    """
    identity = message.get("id")
    if not isinstance(identity, str) or len(identity) > MAX_ID_CHARACTERS:
        raise Refusal("", "malformed", "the request has no id")
    if token is not None and not _same(token, message.get("token")):
        raise Refusal(identity, "token", "the request does not carry the token of this service")
    operation = message.get("operation")
    if not isinstance(operation, str):
        raise Refusal(identity, "malformed", "the request names no operation")
    if not _is_understood(message, version) and operation not in OPEN_OPERATIONS:
        raise Refusal(identity, "version", f"the service is of version {version}", version)
    arguments = message.get("arguments")
    if not isinstance(arguments, dict):
        raise Refusal(identity, "malformed", "the arguments of the request are no object")
    return Request(identity, operation, arguments, _deadline(identity, message.get("deadline")))


def _is_understood(message: dict[str, Any], version: str) -> bool:
    theirs = message.get("version")
    if message.get("protocol") != frames.PROTOCOL or not isinstance(theirs, str):
        return False
    return len(theirs) <= MAX_ID_CHARACTERS and release(theirs) <= release(version)


def _same(token: str, given: object) -> bool:
    # Lone surrogates are legal in JSON, and no reason to fail.
    return isinstance(given, str) and hmac.compare_digest(
        token.encode("ascii"), given.encode("utf-8", "surrogatepass")
    )


def _deadline(identity: str, seconds: object) -> float:
    if seconds is None:
        return math.inf
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise Refusal(identity, "malformed", "the deadline of the request is no number of seconds")
    try:
        return time.monotonic() + seconds
    except OverflowError as error:
        raise Refusal(identity, "malformed", "the deadline of the request is too far") from error
