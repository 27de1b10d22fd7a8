"""Run an app on a socket until a signal comes."""

from __future__ import annotations

import errno
import logging
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import uvicorn

from memkit.errors import MemkitError

if TYPE_CHECKING:
    from types import FrameType

    from starlette.types import ASGIApp

STOP_SECONDS = 10
"""The time limit for requests in progress after a signal."""

MOST_CONNECTIONS = 768
"""Further requests get 503. Most systems let a process open 1,024 files."""

_BACKLOG = 1024


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, on_end: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_end = on_end

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._on_end()
        super().handle_exit(sig, frame)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End at a signal, as uvicorn does, but do not send it to this process once more afterwards."""
        ends = (signal.SIGINT, signal.SIGTERM)
        before = {one: signal.signal(one, self.handle_exit) for one in ends}
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """Yield a socket that listens. Raise `MemkitError`."""
    try:
        family, _, _, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.create_server((str(place[0]), port), family=family, backlog=_BACKLOG)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        advice = "choose another --port"
        if getattr(error, "errno", 0) == errno.EADDRINUSE:
            advice = f"end the `memkit serve` that is running, or {advice}"
        raise MemkitError(f"cannot listen on {host}, port {port}: {reason}; {advice}") from error
    with bound:
        # Head and body of a response are written one after the other. asyncio sees no TCP in this socket.
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield bound


def run(app: ASGIApp, bound: socket.socket, on_end: Callable[[], None]) -> None:
    """Answer requests on a listening socket until SIGINT or SIGTERM; let those in progress end.

    `on_end` ends those that would go on for ever. A signal handler calls it.
    """
    logging.getLogger("uvicorn").parent = logging.getLogger("memkit")
    _Server(configured(app), on_end).run(sockets=[bound])


def configured(app: ASGIApp) -> uvicorn.Config:
    """Return the configuration of a server of `app`."""
    return uvicorn.Config(
        app,
        access_log=False,  # it has what was asked; the guard logs without
        backlog=_BACKLOG,
        http="h11",
        limit_concurrency=MOST_CONNECTIONS,
        log_config=None,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=STOP_SECONDS,
        ws="none",
    )
