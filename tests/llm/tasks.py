"""Tasks for providers in tests."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from memkit.llm import Task

TOOL = "summary"
SCHEMA: dict[str, Any] = {
    "type": "object", "properties": {"bullets": {"type": "array", "items": {"type": "string"}}},
    "required": ["bullets"],
}  # fmt: skip
BULLETS = {"bullets": ["The gateway listens on 7443."]}
MATERIAL = "Which port? 7443. A lone surrogate: \udc80."
PROSE = "Sure, I can help you with the gateway!"
"""An answer of a model that joins the conversation instead of summarizing it."""

TASK = Task("Tell what was decided.", MATERIAL, TOOL, SCHEMA, max_tokens=1234)


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
