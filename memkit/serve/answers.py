"""The one way to write JSON: a file can hold any bytes, so text may be more than UTF-8 can hold."""

from __future__ import annotations

import json
from typing import Any

from fastapi.responses import JSONResponse

from memkit.text import encodable


def dumped(value: Any) -> bytes:
    """Return a value as JSON in UTF-8."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return encodable(text).encode()


class Answer(JSONResponse):
    """A response of JSON."""

    def render(self, content: Any) -> bytes:
        """Return the body."""
        return dumped(content)
