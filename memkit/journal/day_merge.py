"""Merge a user's edit of a day with what memkit wrote into the file meanwhile."""

from __future__ import annotations

from collections import Counter

from memkit.journal.day_file import DayFile

_Key = tuple[str, str, int]


def merge(before: str, edited: str, present: str) -> str:
    """Return `edited`, a user's edit of `before`, plus the changes between `before` and `present`.

    Works by sections. New sections go to their place, removed ones go, and changed ones are taken over
    unless the user changed or removed them too.
    """
    if present == before:
        return edited
    old, new, result = _pieces(before), _pieces(present), _pieces(edited)
    for key in old.keys() - new.keys():
        result.pop(key, None)
    order = list(result)
    last: _Key | None = None
    for key, text in new.items():
        if key not in old and key not in result:
            order.insert(order.index(last) + 1 if last in order else len(order), key)
            result[key] = text
        elif key in result and result[key] == old.get(key):
            result[key] = text
        last = key if key in result else last
    return "\n".join(result[key] for key in order) + "\n"


def _pieces(text: str) -> dict[_Key, str]:
    """Return the text before the first section and each section, in order, by key."""
    content = DayFile(text)
    sections = content.sections
    first = sections[0].start if sections else len(content.lines)
    found: dict[_Key, str] = {("", "", 0): "\n".join(content.lines[:first])}
    seen: Counter[tuple[str, str]] = Counter()
    for section in sections:
        kind = next(key for key in ("turn", "note", "session") if key in section.pairs)
        name = section.pairs[kind]
        found[kind, name, seen[kind, name]] = "\n".join(content.lines[section.start : section.end])
        seen[kind, name] += 1
    return found
