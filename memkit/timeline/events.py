"""Go through what a node holds: turns with some words, and original exchanges, page by page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import date, datetime
from functools import lru_cache
from html import unescape
from typing import TypedDict

from memkit import anchors
from memkit.archive.archive import Archive
from memkit.archive.turn import ArchivedTurn
from memkit.bullets import read_bullet
from memkit.conversation.turn import Message
from memkit.conversation.values import redacted_again
from memkit.errors import ArchiveError, JournalError, NotFoundError
from memkit.journal.day_file import DayFile, heading_title
from memkit.journal.sessions import shown_line
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.text import encodable, estimate_tokens, one_line, shorten
from memkit.timeline import nodes
from memkit.timeline.nodes import parse_span
from memkit.timeline.tree import Node, Timeline, TimelineNode
from memkit.timeline.view import MOST_TOKENS

LINE_CHARACTERS = 200
_LABEL = re.compile(r"^\*\*(?:Asked|Did|Answered|Interrupted)\*\* ?")
_NUMBER = re.compile("[0-9]{1,9}")
EVENT_CHARACTERS = 1200
"""The most characters of an event; `memkit transcript` shows all of it."""

_MOST_MISSING = 10
_CHILD_MATCHES = 3
_ROOM = MOST_TOKENS - 200
"""The tokens of all matches or events of an answer; the rest is for the node and what is missing."""

_ENTRY_TOKENS = 40
"""The size of the names and times of a match or an event, without its text."""


class WordMatch(TypedDict):
    """A turn, a note, or a bullet that has all words."""

    kind: str
    id: str
    time: str
    session: str | None
    title: str
    line: str


class ChildMatches(TypedDict):
    """The first matches in a child."""

    node: TimelineNode
    matches: list[WordMatch]
    next: str | None


class NodeMatches(ChildMatches):
    """The matches in a node."""

    search: str


class ChildrenMatches(TypedDict):
    """The children of a node with matches. `more` is whether further children follow the last one."""

    node: TimelineNode
    search: str
    children: list[ChildMatches]
    more: bool


class ArchivedEvent(TypedDict):
    """An original message; `number` counts those of its turn, from 1."""

    turn: str
    session: str | None
    time: str | None
    role: str
    text: str
    number: int


class Events(TypedDict):
    """A page of original messages. `missing` are turns without an original."""

    node: TimelineNode
    events: list[ArchivedEvent]
    missing: list[str]
    more_missing: int
    problems: list[str]
    next: str | None


def find_words(
    timeline: Timeline, node: Node, words: str, limit: int, after: str, announce: Callable[[str], None]
) -> NodeMatches:
    """Return the turns, notes, and bullets of a node that have all `words`, in the order of time.

    A plain scan: upper and lower case are the same, and parts of words count. `after` is the `next` of an
    earlier answer. A day that cannot be read is reported to `announce`.
    """
    wanted = [word.casefold() for word in words.split()]
    matches: list[WordMatch] = []
    room, is_wanted, upcoming = _ROOM, not after, ""
    seen: set[str] = set()
    for match in _matches(timeline, node, wanted, announce) if wanted else ():
        if match["id"] in seen:
            continue
        seen.add(match["id"])
        if not is_wanted:
            is_wanted = match["id"] == after
            continue
        room -= _ENTRY_TOKENS + estimate_tokens(f"{match['title']} {match['line']}")
        if len(matches) == limit or (room < 0 and matches):
            upcoming = matches[-1]["id"]
            break
        matches.append(match)
    _check_cursor(is_wanted, after)
    return {"node": node.as_dict(), "search": words, "matches": matches, "next": upcoming or None}


def find_in_children(
    timeline: Timeline, node: Node, words: str, limit: int, announce: Callable[[str], None]
) -> ChildrenMatches:
    """Return the children of a node in which something has all `words`, with the first matches of each."""
    children: list[ChildMatches] = []
    has_more = False
    for child in timeline.children(node):
        found = find_words(timeline, child, words, _CHILD_MATCHES, "", announce)
        if not found["matches"]:
            continue
        if len(children) == limit:
            has_more = True
            break
        children.append({"node": found["node"], "matches": found["matches"], "next": found["next"]})
    return {"node": node.as_dict(), "search": words, "children": children, "more": has_more}


def _check_cursor(is_found: bool, after: str) -> None:
    if not is_found:
        raise NotFoundError(f"there is nothing {after!r} to go on after; take `next` of an earlier answer")


def _matches(
    timeline: Timeline, node: Node, wanted: list[str], announce: Callable[[str], None]
) -> Iterator[WordMatch]:
    for day in _days(timeline, node):
        try:
            text = encodable(timeline.journal.text(f"{day}.md"))
        except JournalError as error:
            announce(str(error))
            continue
        folded = text.casefold()
        if not all(word in folded for word in wanted):
            continue
        content, session = DayFile(text), ""
        own = _own_turns(timeline, node)
        for section in content.sections:
            if section.is_opening:
                session = section.pairs.get("session", "")
            name = section.pairs.get("turn", "")
            if own is not None and (name or section.pairs.get("note")) not in own:
                continue
            lines = content.lines[section.start : section.end]
            if section.is_opening and "session" in section.pairs:
                lines = [lines[0], *(line for line in lines[1:] if read_bullet(line))]
            found = _match(lines, wanted)
            if found is None or (section.is_opening and "session" in section.pairs and not found):
                continue  # the heading of a session repeats those of its turns
            bullet = anchors.parse(found).get("grip", "") if section.is_opening else ""
            title = one_line(unescape(heading_title(section)), LINE_CHARACTERS)
            yield {
                "kind": nodes.TURN if name else nodes.NOTE if "note" in section.pairs else "bullet",
                "id": name or section.pairs.get("note", "") or bullet,
                "time": f"{day[:10]} {section.minute}".strip(),
                "session": session or None,
                "title": title,
                "line": _shown(found, wanted, title),
            }


def _match(lines: list[str], wanted: list[str]) -> str | None:
    folded = [anchors.strip(line).casefold() for line in lines]
    if not all(any(word in line for line in folded) for word in wanted):
        return None
    best = _best_line(folded, wanted)
    return lines[best] if best else ""


def _shown(line: str, wanted: list[str], title: str) -> str:
    text = _LABEL.sub("", shown_line(line))
    return "" if text == title else shorten(_around(text, wanted), LINE_CHARACTERS)


def _best_line(lines: list[str], wanted: list[str]) -> int:
    """Return the number of the line with most of the words; the heading comes last, as it is shown anyway."""

    def rank(number: int) -> tuple[int, bool, int]:
        return sum(word in lines[number] for word in wanted), number > 0, -number

    return max(range(len(lines)), key=rank)


def _around(line: str, wanted: list[str]) -> str:
    folded = line.casefold()
    place = min((at for word in wanted if (at := folded.find(word)) >= 0), default=0)
    start = max(0, place - LINE_CHARACTERS // 4)
    return f"… {line[start:].partition(' ')[2]}" if start else line


def _days(timeline: Timeline, node: Node) -> list[str]:
    if node.kind in (nodes.SEGMENT, nodes.NOTE, nodes.TURN):
        span = parse_span(node.first[:10])
    else:
        span = parse_span(node.id)
    assert span is not None
    return timeline.days_in(span)


def _own_turns(timeline: Timeline, node: Node) -> set[str] | None:
    """Return the turns of a segment, or the id of a turn or note; None for a period, to which all belongs."""
    if node.kind == nodes.SEGMENT:
        return {child.id for child in timeline.children(node)}
    return {node.id} if node.kind in (nodes.NOTE, nodes.TURN) else None


def events(
    timeline: Timeline, node: Node, home: Home, limit: int, after: str, redact: Callable[[str], str], *,
    other_projects: bool = True, since: datetime | None = None, until: datetime | None = None,
) -> Events:
    """Return the original messages of a node from the archive, in the order of its turns.

    A message is cut to `EVENT_CHARACTERS`. `after` is the `next` of an earlier answer: a turn, and the number
    of its last message. Without `other_projects`, a turn counts only if the archive assigns it to this
    project: a memory that came with a repository can name any turn.

    `since` and `until` (excluded) leave out messages of other times, and turns of other days.
    """
    archive = Archive(home)
    first = since.astimezone().date() if since else date.min
    last = until.astimezone().date() if until else date.max

    @lru_cache(4)
    def archived(session: str) -> dict[str, ArchivedTurn]:
        return {turn.id: turn for turn in archive.turns(session)}

    found: list[ArchivedEvent] = []
    missing: list[str] = []
    problems: dict[str, None] = {}
    at, _, number = after.partition(".")
    passed = int(number) if _NUMBER.fullmatch(number) else 0
    room, is_wanted, upcoming = _ROOM, not after, ""
    for turn, session in _turns_of(timeline, node, first, last).items():
        skipped = 0
        if not is_wanted:
            is_wanted = turn == at
            if not is_wanted:
                continue
            skipped = passed
        try:
            original = archived(session).get(turn)
        except (ArchiveError, OSError) as error:
            problems[one_line(str(error))] = None
            original = None
        if original is not None and not other_projects:
            owner = Project.at_root(original.project, home).root if original.project else ""
            original = original if owner == timeline.project.root else None
        if original is None:
            missing.append(turn)
            continue
        for place, message in enumerate(original.messages, start=1):
            if place <= skipped or not _is_within(message.time, since, until):
                continue
            shown = _event(redacted_again(message, redact), turn, session, place)
            room -= _ENTRY_TOKENS + estimate_tokens(shown["text"])
            if len(found) == limit or (room < 0 and found):
                upcoming = f"{found[-1]['turn']}.{found[-1]['number']}"
                break
            found.append(shown)
        if upcoming:
            break
    _check_cursor(is_wanted, after)
    return {
        "node": node.as_dict(),
        "events": found,
        "missing": missing[:_MOST_MISSING],
        "more_missing": len(missing[_MOST_MISSING:]),
        "problems": list(problems),
        "next": upcoming or None,
    }


def _turns_of(timeline: Timeline, node: Node, first: date, last: date) -> dict[str, str]:
    """A turn counts from the day before `first` on: it may have lasted over midnight."""
    if node.kind == nodes.SEGMENT:
        return {child.id: child.session for child in timeline.children(node)}
    found: dict[str, str] = {}
    for name in dict.fromkeys(name[:10] for name in _days(timeline, node)):
        day = date.fromisoformat(name)
        if day.toordinal() + 1 >= first.toordinal() and day <= last:
            for segment in timeline.segments_of(day):
                for turn in segment.turns:
                    found.setdefault(turn, segment.session)
    return found


def _is_within(time: datetime | None, since: datetime | None, until: datetime | None) -> bool:
    """Return whether a message is in the range. One without a time is in each."""
    return time is None or ((since is None or time >= since) and (until is None or time < until))


def _event(message: Message, turn: str, session: str, number: int) -> ArchivedEvent:
    parts = [message.text] if message.text else []
    for tool in message.tools:
        if tool.result is not None:
            parts.append(f"← {tool.name}{' failed' if tool.is_error else ''}: {tool.result}")
        else:
            parts += [f"→ {text}" for text in Message("", None, "", (tool,), "").texts()]
    text = "\n".join(parts)
    if len(text) > EVENT_CHARACTERS:
        left = len(text) - EVENT_CHARACTERS
        text = f"{text[:EVENT_CHARACTERS]} … ({left:,} characters more)"
    return {
        "turn": turn,
        "session": session or None,
        "time": message.time.isoformat() if message.time else None,
        "role": message.role,
        "text": text,
        "number": number,
    }
