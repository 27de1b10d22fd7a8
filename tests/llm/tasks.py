"""Tasks for providers in tests."""

from __future__ import annotations

from typing import Any

from memkit.llm import Task

TOOL = "summary"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"bullets": {"type": "array", "items": {"type": "string"}}},
    "required": ["bullets"],
}
BULLETS = {"bullets": ["The gateway listens on 7443."]}
MATERIAL = "Which port? 7443. A lone surrogate: \udc80."
PROSE = "Sure, I can help you with the gateway!"
"""An answer of a model that joins the conversation instead of summarizing it."""

TASK = Task("Tell what was decided.", MATERIAL, TOOL, SCHEMA, max_tokens=1234)
