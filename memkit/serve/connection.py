"""One connection of a client. uvicorn waits without end for a slow one; here each wait has a limit."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0
"""The time for the head of a request, from the connection or from the response before it."""

WRITE_SECONDS = 30.0
"""The time for a client that reads nothing of its response."""

MOST_CONNECTIONS = 2000
_OTHER_FILES = 256
"""The descriptors that connections leave for the files of the memory."""


class Connection(H11Protocol):
    """A connection that ends if the client is too slow, or if there are too many.

    h11 also bounds the size of a head (16 KB), and refuses what a proxy might read in another way.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._head_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        if len(self.connections) > most_connections():
            transport.abort()
        else:
            self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        _cancel(self._head_timer)
        _cancel(self._write_timer)
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Take what has arrived; with a whole head, the response is ours to send."""
        super().handle_events()
        if self.conn.our_state is h11.SEND_RESPONSE:
            _cancel(self._head_timer)

    def on_response_complete(self) -> None:
        """Wait for the next request. What is left of a refused body may arrive in that time, too."""
        self._await_head()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Wait for the client to read."""
        super().pause_writing()
        _cancel(self._write_timer)
        self._write_timer = self.loop.call_later(WRITE_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on writing."""
        super().resume_writing()
        _cancel(self._write_timer)

    def _await_head(self) -> None:
        _cancel(self._head_timer)
        # `close` would wait until the client has read everything.
        self._head_timer = self.loop.call_later(HEAD_SECONDS, self.transport.abort)


def most_connections() -> int:
    """Return how many connections there may be at once, as the limit of open files allows."""
    if sys.platform == "win32":
        return MOST_CONNECTIONS
    import resource

    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_CONNECTIONS if files < 0 else max(1, min(MOST_CONNECTIONS, files - _OTHER_FILES))


def allow_connections() -> None:
    """Raise this process's limit of open files as far as needed, where the system lets it."""
    if sys.platform == "win32":
        return
    import resource

    files, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_CONNECTIONS + _OTHER_FILES
    if 0 <= files < wanted:
        allowed = wanted if most < 0 else max(files, min(wanted, most))
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, most))


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
