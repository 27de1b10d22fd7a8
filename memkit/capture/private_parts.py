"""`<private>` parts that begin in one piece of a conversation and end in another.

Of a single text `redact` cuts such a part to its end. What follows, up to the `</private>`, is private too:
in the next block, the result of the next call, or what was typed while Claude worked.

Standard library only, Python 3.9 syntax: the hooks import this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, List, Match, Tuple

from memkit.capture.redact import PRIVATE_TAG

if TYPE_CHECKING:
    from memkit.capture.transcript import Block, Entry

MAX_ENTRIES = 500
MAX_TEXTS = 2000
"""So far, and not beyond the turn, the end of a private part is looked for."""

_MARK = "[redacted:private]"


def without_unopened(prompt: str) -> str:
    """`prompt` without what stands before a `</private>` that nothing in it opened.

    It was typed into the middle of a turn, and began in what was typed before.
    """
    depth = end = 0
    for tag in PRIVATE_TAG.finditer(prompt):
        if not tag[1]:
            depth += 1
        elif depth:
            depth -= 1
        else:
            end = tag.end()
    return _MARK + prompt[end:] if end else prompt


def close_private(entries: Iterable[Entry]) -> Iterator[Entry]:
    """`entries` without what is private because of a tag in an earlier text of the same turn.

    Entries behind one that leaves a part open are held until the turn ends.
    """
    held: List[Entry] = []
    for entry in entries:
        if held and (len(held) == MAX_ENTRIES or _begins_turn(entry, held[0])):
            yield from _cut(held)
            held = []
        if held or _leaves_open(entry):
            held.append(entry)
        else:
            yield entry
    yield from _cut(held)


def _begins_turn(entry: Entry, before: Entry) -> bool:
    if entry.role != "user" or entry.queued or entry.is_meta or entry.is_sidechain:
        return False
    is_result = any(block.kind == "tool_result" for block in entry.blocks)
    return not is_result and not (entry.prompt_id and entry.prompt_id == before.prompt_id)


def _leaves_open(entry: Entry) -> bool:
    opens: List[bool] = []

    def look(text: str) -> str:
        opens.append(_depth(PRIVATE_TAG.finditer(text)) > 0)
        return text

    _each_text(entry, look)
    return any(opens)


def _depth(tags: Iterable[Match[str]]) -> int:
    depth = 0
    for tag in tags:
        depth = max(0, depth - 1) if tag[1] else depth + 1
    return depth


def _cut(entries: List[Entry]) -> Iterator[Entry]:
    texts: List[str] = []

    def take(text: str) -> str:
        texts.append(text)
        return text

    for entry in entries:
        _each_text(entry, take)
    kept = iter(_cut_texts(texts))
    for entry in entries:
        yield _each_text(entry, lambda text: next(kept))


def _cut_texts(texts: List[str]) -> List[str]:
    tags = [list(PRIVATE_TAG.finditer(text)) for text in texts[:MAX_TEXTS]]
    changes = [_changes(found) for found in tags]
    kept = list(texts)
    number = 0
    while number < len(tags):
        depth = _depth(tags[number])
        last, end = _end(tags, changes, number + 1, depth) if depth else (0, 0)
        if not last:
            number += 1
            continue
        kept[number + 1 : last] = [
            _MARK if text.strip() else text for text in kept[number + 1 : last]
        ]
        kept[last] = _MARK + texts[last][end:]
        tags[last] = [tag for tag in tags[last] if tag.start() >= end]
        changes[last] = _changes(tags[last])
        number = last  # which may open another
    return kept


def _changes(tags: List[Match[str]]) -> Tuple[int, int]:
    """By how much the tags of a text change the depth, at the lowest and in all."""
    lowest = depth = 0
    for tag in tags:
        depth += -1 if tag[1] else 1
        lowest = min(lowest, depth)
    return lowest, depth


def _end(
    tags: List[List[Match[str]]], changes: List[Tuple[int, int]], start: int, depth: int
) -> Tuple[int, int]:
    """In which text from `start` on, and where in it, a part of this depth ends; zeros if it does not."""
    for number in range(start, len(tags)):
        lowest, change = changes[number]
        if depth + lowest > 0:
            depth += change
            continue
        for tag in tags[number]:
            depth += -1 if tag[1] else 1
            if not depth:
                return number, tag.end()
    return 0, 0


def _each_text(entry: Entry, change: Callable[[str], str]) -> Entry:
    """`entry` with every text that was said, given to a tool or returned by one as `change` gives it."""
    from dataclasses import replace  # slow to import, and hooks need none of this

    return replace(entry, blocks=tuple(_each_in_block(b, change) for b in entry.blocks))


def _each_in_block(block: Block, change: Callable[[str], str]) -> Block:
    from dataclasses import replace

    if block.kind == "tool_use":
        return replace(block, tool_input=_each_string(block.tool_input, change))
    return replace(block, text=change(block.text)) if block.text else block


def _each_string(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: _each_string(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [_each_string(item, change) for item in value]
    return value
