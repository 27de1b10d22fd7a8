"""An address where no connection comes about, as behind a firewall that drops everything."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager


@contextmanager
def unanswered_address() -> Iterator[str]:
    """Yield the host and port of a socket whose queue of connections is full."""
    with ExitStack() as stack:
        server = stack.enter_context(socket.socket())
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for _ in range(8):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(server.getsockname())
        yield f"127.0.0.1:{server.getsockname()[1]}"
