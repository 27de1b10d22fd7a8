"""Read the entries of a project's memory in a hook.

The files of a memory may come with a repository, from anybody. So the home keeps, for each project, a
fingerprint of each heading, entry, and bullet that its journal ever wrote, and hooks quote nothing else.
Anchors prove nothing: anybody who has seen a memory can forge them around other words.
"""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterator

from memkit import anchors
from memkit.bullets import bullet_words
from memkit.files import MOST_BYTES, PRIVATE_FILE, inside, make_private_directory, read_tail
from memkit.paths import Home
from memkit.projects.project import Project, Registry, digest16
from memkit.text import encodable

HOOK_BYTES = 1024 * 1024
"""Bytes that a hook reads from the end of a day file or of the fingerprints (the newest 60,000)."""

ANSWER_CHARACTERS = 280
"""Characters of an entry's answer to quote; the skill shows the rest."""

MACHINE = r"[a-z0-9][a-z0-9-]{0,30}-[0-9a-f]{4}"
"""The name of another machine of the user, in the names of days that come from there."""

DAY_FILE = re.compile(rf"^\d{{4}}-\d{{2}}-\d{{2}}(?:\.local|\.(?P<machine>{MACHINE}))?\.md$")

_COPY = re.compile(r"^\d{4}-\d\d-\d\d.*(?:conflicted copy|sync-conflict-|_(?:BACKUP|BASE|LOCAL|REMOTE)_\d)")
_BLOCK = 65_536

# A line ends at a line feed only, as for the journal.
_HEADING = re.compile(r"^#{2,3} [^\n]*", re.MULTILINE)
_LABEL = re.compile(r"^\*\*(Asked|Did|Answered|Interrupted)\*\*", re.MULTILINE)
_ORDER = {"Asked": 0, "Did": 1, "Answered": 2, "Interrupted": 2}


def is_copy(name: str) -> bool:
    """Return whether a file is a copy of a day that git or a sync program made in a conflict."""
    return _COPY.match(name) is not None


def machine_of(day: str) -> str:
    """Return the machine that a day comes from, by the name of its file without suffix; "" for this one."""
    match = DAY_FILE.match(f"{day}.md")
    return (match["machine"] if match else "") or ""


def days(project: Project) -> list[str]:
    """Return the remembered days, oldest first: the names of their files without the suffix.

    That is an ISO date, the date and `.local` where git tracks the file of that name, the date and
    `.openclaw` for a file in OpenClaw's folder, or the date and another machine of the user (`memkit sync`);
    a day may have several. `Project.day_file` has the
    path. Leave out devices, links that lead out of the memory, and all days of a memory that itself leads out
    of the project. The doctor reports them.
    """
    try:
        memory = inside(project.memory, project.root)
        with os.scandir(memory) as entries:
            found = [entry for entry in entries if DAY_FILE.match(entry.name)]
        own = [entry.name[:-3] for entry in found if _is_day(entry, memory)]
    except OSError:
        own = []
    return sorted([*own, *project.openclaw_days()])


def _is_day(entry: os.DirEntry[str], memory: str) -> bool:
    if entry.is_file(follow_symlinks=False):
        return True
    try:
        return entry.is_symlink() and os.path.isfile(inside(entry.path, memory))
    except OSError:
        return False


def read_days(project: Project, names: list[str], most: int) -> Iterator[tuple[str, str]]:
    """Yield date and text of these days, newest first; of each its last `most` bytes."""
    for day in reversed(names):
        try:
            data = read_tail(project.real_file(project.day_file(day)), most)
        except OSError:  # deleted or unreadable since the listing; go on with the other days
            continue
        yield day[:10], anchors.own_part(data.decode("utf-8", "replace"))


def sections_of(text: str) -> Iterator[tuple[str, str, list[tuple[str, str]]]]:
    """Yield each heading of a session, the text below it, and its turns: headings and bodies.

    A note is a turn without a session. As in the journal, only headings with anchors begin a section. The
    heading of a session may be that of its only turn, too.
    """
    session, below = "", ""
    turns: list[tuple[str, str]] = []
    marks = [(match, kind) for match in _HEADING.finditer(text) if (kind := _kind(match[0]))]
    ends = [mark.start() - 1 for mark, _ in marks[1:]] + [len(text)]
    for (mark, kind), end in zip(marks, ends):
        body = text[mark.end() + 1 : end]
        if kind == "turn":
            turns.append((mark[0], body))
            continue
        yield session, below, turns
        session, below, turns = mark[0], body, []
        if kind == "note":
            yield "", "", [(mark[0], body)]
            session = below = ""
        elif "turn" in anchors.parse(session):
            below, turns = "", [(session, body)]
    yield session, below, turns


def _kind(line: str) -> str:
    found = anchors.parse(line) if "<!--" in line else {}
    kinds = ("turn",) if line.startswith("### ") else ("note", "session")
    return next((kind for kind in kinds if kind in found), "")


def entries_of(text: str) -> Iterator[tuple[str, str]]:
    """Yield heading and body of each turn and note."""
    for _, _, found in sections_of(text):
        for line, body in found:
            yield heading_words(line), body


def answer_of(body: str, limit: int = ANSWER_CHARACTERS) -> str:
    """Return the answer on one line, cut at a word; all of it if `limit` is 0."""
    labelled = _labelled(body)
    text = " ".join((labelled.get("Answered") or labelled.get("Did") or "").split())
    if not limit or len(text) <= limit:
        return text
    return text[: limit - 2].rsplit(" ", 1)[0] + " …"


def did_words(heading: str, body: str) -> str:
    """Return the tool calls of a turn with its heading on one line, or "" if it has none."""
    did = " ".join(_labelled(body).get("Did", "").split())
    return f"{heading} did {did}" if did else ""


def turn_words(heading: str, body: str) -> str:
    """Return a whole turn on one line, or "" if it is not memkit's: decisions are quoted from any part."""
    parts = [f"{label} {' '.join(text.split())}" for label, text in _labelled(body).items()]
    return " ".join([heading, *parts]) if parts else ""


def _labelled(body: str) -> dict[str, str]:
    """Return the parts of a turn by label; none if a label is repeated or misplaced: not memkit's turn."""
    parts = _LABEL.split(body)
    order = [_ORDER.get(label, len(_ORDER)) for label in parts[1::2]]
    if any(after <= before for before, after in zip(order, order[1:])):
        return {}
    return dict(zip(parts[1::2], parts[2::2]))


def heading_words(line: str) -> str:
    """Return a heading without its marks and anchors, on one line."""
    return " ".join(anchors.strip(line).lstrip("#").split())


def entry_words(heading: str, answer: str) -> str:
    """Return an entry as it is quoted: its heading, and the start of its answer if it has one."""
    return f"{heading} -> {answer}" if answer else heading


def prompt_hint(project: Project, today: str) -> str:
    """Return the hint for a prompt, or "" if there is no day before `today` to recall."""
    earlier = [day for day in days(project) if day < today]
    if not earlier:
        return ""
    return (
        f"memkit holds what was said and done in this project since {earlier[0][:10]}; "
        "the memkit:memory-recall skill finds it when history would help."
    )


class OwnEntries:
    """The words in one project's memory that this home wrote."""

    def __init__(self, home: Home, root: str, most: int = MOST_BYTES) -> None:
        """Read at most the last `most` bytes of each record, for the project's root and its earlier ones."""
        parts = []
        for place in (root, *Registry.read(home).earlier_roots(root)):
            try:
                parts.append(read_tail(own_file(home, place), most))
            except OSError:  # nothing was written yet, or the record is unreadable
                continue
        self._fingerprints = b"\n" + b"\n".join(parts) + b"\n"

    def __contains__(self, words: object) -> bool:
        """Return whether this home wrote these words: a heading, a bullet, or what a `…_words` returns."""
        return isinstance(words, str) and b"\n" + _fingerprint(words) + b"\n" in self._fingerprints


def is_own_turn(section: str, own: Container[str]) -> bool:
    """Return whether all words of a turn are in `own`."""
    line, _, body = section.partition("\n")
    words = turn_words(heading_words(line), body)
    return bool(words) and words in own


def own_file(home: Home, root: str) -> str:
    """The path of the fingerprints of the project at `root`."""
    return os.path.join(home.projects, digest16(root) + ".own")


def note_own(home: Home, root: str, before: str, after: str, among: Container[str] | None = None) -> None:
    """Record the quotable words that `after` has and `before` lacks as written by this home.

    `before` and `after` are the text of one file. `among` limits the words. Call it before the file is
    written: words that never get there do no harm. Raise `OSError`.
    """
    before, after = _without_equal_ends(before, after)
    old = set(quotable(before))
    new = [words for words in dict.fromkeys(quotable(after)) if words not in old]
    _record(home, root, [words for words in new if among is None or words in among])


def note_redacted(home: Home, root: str, before: str, after: str) -> None:
    """Record own words as they read after redaction changed `before` to `after`. Raise `OSError`."""
    old, new = list(quotable(before)), list(quotable(after))
    if len(old) != len(new):  # not the same entries
        return
    own = OwnEntries(home, root)
    _record(home, root, [b for a, b in zip(old, new) if a != b and a in own])


def _record(home: Home, root: str, new: list[str]) -> None:
    if not new:
        return
    make_private_directory(home.projects)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
    with os.fdopen(os.open(own_file(home, root), flags, PRIVATE_FILE), "ab") as file:
        file.write(b"".join(_fingerprint(words) + b"\n" for words in new))


def _fingerprint(words: str) -> bytes:
    return digest16(encodable(words)).encode("ascii")


def quotable(text: str) -> Iterator[str]:
    """Yield the headings, bullets, entries, and tool calls of a memory file as they would be quoted."""
    for line in text.split("\n"):
        if line.startswith("#"):
            yield heading_words(line)
            if line.startswith("## ") and anchors.parse(line).keys() >= {"session", "turn"}:
                yield heading_words(line)  # one heading for both, as long as there is one turn
        elif line.startswith("- ") and "<!--" in line:
            yield bullet_words(line)
    for heading, body in entries_of(text):
        yield entry_words(heading, answer_of(body))
        yield entry_words(heading, answer_of(body, 0))
        yield from filter(None, (did_words(heading, body), turn_words(heading, body)))


def _without_equal_ends(before: str, after: str) -> tuple[str, str]:
    """Return the entries in which two texts differ, so that a day of megabytes is not parsed each time."""
    most, start, end = min(len(before), len(after)), 0, 0
    while start + _BLOCK <= most and before.startswith(after[start : start + _BLOCK], start):
        start += _BLOCK
    while start + end + _BLOCK <= most:
        block = after[len(after) - end - _BLOCK : len(after) - end]
        if not before.startswith(block, len(before) - end - _BLOCK):
            break
        end += _BLOCK
    # The only turn of a session shares the heading of the session.
    heading = max(after.rfind("<!-- turn:", 0, start), after.rfind("\n## ", 0, start) + 1)
    start = after.rfind("\n", 0, max(0, heading)) + 1
    end = max(0, end - _BLOCK)  # step back one block, which is longer than an entry
    return before[start : len(before) - end], after[start : len(after) - end]
