"""How the Messages API spells a reply: one JSON object, or the same as server-sent events."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

Block = dict[str, Any]
"""A content block as the API spells it: `text` or `tool_use`."""


def as_message(blocks: Sequence[Block], model: str, input_tokens: int) -> dict[str, Any]:
    """The reply made of `blocks` as one message object."""
    calls_tool = any(block["type"] == "tool_use" for block in blocks)
    return {
        "id": f"msg_{uuid.uuid4().hex[:24]}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": list(blocks),
        "stop_reason": "tool_use" if calls_tool else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": input_tokens, "output_tokens": 5},
    }


def as_events(message: Mapping[str, Any]) -> bytes:
    """A message of `as_message` as server-sent events."""
    events: list[dict[str, Any]] = []
    start = {**message, "content": [], "stop_reason": None}
    events.append({"type": "message_start", "message": start})
    for index, block in enumerate(message["content"]):
        if block["type"] == "tool_use":
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": _spelled(block["input"])}
        else:
            empty = {**block, "text": ""}
            delta = {"type": "text_delta", "text": block["text"]}
        place = {"index": index}
        events.append({"type": "content_block_start", **place, "content_block": empty})
        events.append({"type": "content_block_delta", **place, "delta": delta})
        events.append({"type": "content_block_stop", **place})
    end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    events.append({"type": "message_delta", "delta": end, "usage": message["usage"]})
    events.append({"type": "message_stop"})
    lines = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]
    return "".join(lines).encode()


def _spelled(arguments: Any) -> str:
    """The input of a tool as JSON; a string stands for itself, so that it can be malformed."""
    return arguments if isinstance(arguments, str) else json.dumps(arguments)
