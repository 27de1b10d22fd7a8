"""Find what a name stands for: a day, a session, a turn, a bullet's citation, a note, or a fact.

Reads the Markdown alone, so it needs neither the index nor the service.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, NamedTuple, TypedDict

from memkit import anchors
from memkit.errors import AmbiguousIdError, NotFoundError
from memkit.journal.day_file import DayFile, Section
from memkit.journal.day_merge import whole_day
from memkit.journal.digest import read_note
from memkit.journal.journal import Journal
from memkit.timeline.nodes import day_of

_KINDS = {"session": "session", "turn": "turn", "grip": "citation", "note": "note", "fact": "fact"}
"""The kinds of entries, by the key of the anchor that holds their id."""

_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_SHOWN = 5


class _EntryView(TypedDict):
    kind: str
    id: str
    path: str
    line: int
    session: str | None
    turns: list[str]
    content: str


class EntryView(_EntryView, total=False):
    """An entry as Markdown without anchors. A note has tags and metadata."""

    tags: list[str]
    metadata: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the memory that has a name.

    `kind` is "day", "session", "turn", "citation", "note", "fact", or "result", "year", "month", or "week".
    `path` and `line` (1-based) are where it begins; a period of several days has the memory and line 0.
    `markdown` still has its anchors. `turns` are those it holds or cites.
    """

    kind: str
    id: str
    path: str
    line: int
    session: str
    turns: tuple[str, ...]
    markdown: str

    def as_dict(self) -> EntryView:
        """Return the entry as `memkit show --json` prints it."""
        view: EntryView = {
            "kind": self.kind, "id": self.id, "path": self.path, "line": self.line,
            "session": self.session or None, "turns": list(self.turns),
            "content": anchors.strip(self.markdown),
        }
        if self.kind == "note":
            view["tags"], view["metadata"] = read_note(self.markdown)
        return view


class _File(NamedTuple):
    name: str
    path: str
    content: DayFile


def find_day(journal: Journal, name: str, today: date) -> Entry | None:
    """Return the day that an ISO date, `today`, `yesterday`, or `tomorrow` names; None for another name.

    Raise `NotFoundError` if there is no memory of that day.
    """
    near = {"today": today, "yesterday": today - timedelta(days=1), "tomorrow": today + timedelta(days=1)}
    if name not in near and not _DAY.fullmatch(name):
        return None
    wanted = near[name].isoformat() if name in near else name
    known = journal.days()
    files = [_File(day, str(journal.path(day)), journal.day(day)) for day in known if day[:10] == wanted]
    if not files and day_of(wanted) is None:
        raise NotFoundError(f"{wanted} is not a day of the calendar")
    if not files:
        nearest = [day[:10] for day in known if day < wanted][-1:] or [day[:10] for day in known[:1]]
        hint = f"the nearest day is {nearest[0]}" if nearest else "it has no day yet"
        raise NotFoundError(f"{journal.project.root} has no memory of {wanted}; {hint}")
    turns = [s.pairs["turn"] for one in files for s in one.content.sections if "turn" in s.pairs]
    text = whole_day(one.content for one in files).render()
    return Entry("day", wanted, files[0].path, 1, "", tuple(turns), text)


def find_entry(journal: Journal, name: str) -> Entry | None:
    """Return the entry whose id is or begins with `name`, or None. Raise `AmbiguousIdError`."""
    found: dict[tuple[str, str], tuple[_File, int]] = {}
    for file, number, key, value in _places(journal, name):
        found.setdefault((key, value), (file, number))
        if value == name:
            break
    found = {one: place for one, place in found.items() if one[1] == name} or found
    if len(found) > 1:
        shown = ", ".join(f"{_KINDS[key]} {value}" for key, value in list(found)[:_SHOWN])
        more = ", …" if len(found) > _SHOWN else ""
        raise AmbiguousIdError(f"{name!r} matches {len(found)} entries: {shown}{more}; give more characters")
    for (key, value), (file, number) in found.items():
        return _session(journal, value) if key == "session" else _entry(file, number, key, value)
    return None


def _places(journal: Journal, prefix: str) -> Iterator[tuple[_File, int, str, str]]:
    if not prefix:
        return
    for path in reversed(journal.markdown()):
        text = journal.text(path)
        if f":{prefix}" not in text:
            continue
        file = _File(path.stem, str(path), DayFile(text))
        for number, line in enumerate(file.content.lines):
            if f":{prefix}" in line:
                pairs = anchors.parse(line)
                if "overview" in pairs:  # stands for an entry below
                    continue
                for key in _KINDS:
                    if pairs.get(key, "").startswith(prefix):
                        yield file, number, key, pairs[key]


def _session(journal: Journal, session: str) -> Entry:
    parts: list[str] = []
    turns: list[str] = []
    first: tuple[str, int] | None = None
    for path in journal.markdown():
        text = journal.text(path)
        if f"session:{session}" not in text:
            continue
        content = DayFile(text)
        own = [section for name, section in _by_session(content) if name == session]
        if own:
            first = first or (str(path), content.file_lines()[own[0].start])
            parts += [f"# {path.stem[:10]}", *_texts(content, own)]
            turns += [section.pairs["turn"] for section in own if "turn" in section.pairs]
    place, line = first or ("", 0)
    return Entry("session", session, place, line, session, tuple(dict.fromkeys(turns)), "\n\n".join(parts))


def _texts(content: DayFile, sections: Sequence[Section]) -> Iterator[str]:
    """Yield the text of sections; a session and its only turn have one heading, as in the file."""
    sharing = content.sharing_turns()
    turns = {section.start for section in sections if section.pairs.get("turn") in sharing}
    for section in sections:
        if section.start in turns:
            yield content.text(section).removeprefix("#")
        elif section.end not in turns:
            yield content.text(section)


def _by_session(content: DayFile) -> Iterator[tuple[str, Section]]:
    session = ""
    for section in content.sections:
        if section.is_opening:
            session = section.pairs.get("session", "")
        yield session, section


def _entry(file: _File, number: int, key: str, value: str) -> Entry:
    content = file.content
    session, section = "", None
    for name, one in _by_session(content):
        if one.start > number:
            break
        session, section = name, one
    place = content.file_lines()[number]
    if section is not None and section.start == number:
        turns: tuple[str, ...] = (value,) if key == "turn" else ()
        return Entry(_KINDS[key], value, file.path, place, session, turns, content.text(section))
    line = content.lines[number]
    turns = tuple(filter(None, anchors.parse(line).get("turns", "").split(",")))
    cited = [content.text(one) for one in map(content.find_turn, turns) if one is not None]
    text = "\n\n".join([line.strip(), *cited])
    return Entry(_KINDS[key], value, file.path, place, session, turns, text)
