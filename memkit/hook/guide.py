"""Write the guide for a new session or sub-agent: when to ask the memory, and which facts hold.

Claude asks more often with it than with a list of the newest entries. Standard library only, Python 3.9
syntax.
"""

from __future__ import annotations

from collections.abc import Container, Iterator

from memkit import anchors
from memkit.bullets import OPEN, read_bullet
from memkit.hook.entries import HOOK_BYTES, days, read_days
from memkit.hook.quotes import FOREIGN, facts_of, place_of, quoted_line
from memkit.hook.tally import tally
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.text import plural

MOMENTS = (
    "It holds what was tried, decided, and fixed, and why. Ask it before repeating an investigation, on an "
    "error that may have come up before, when someone refers to earlier work (“as discussed”, “like last "
    "time”), and before changing a rule or a decision. The memkit:memory-recall skill answers a question "
    "with its evidence; `memkit search WORDS` lists entries."
)

MOST_FACTS = 5
MOST_OPEN = 3
OPEN_DAYS = 3
"""The newest days in which to look for open questions."""

QUOTED_CHARACTERS = 900
_QUOTED = "\nLasting facts and open questions, quoted from earlier sessions:\n<memory>\n"
_LOOKUPS = 20
"""Lines of each sort to check against the fingerprints; a stranger's file may have any number of them."""


def guide(home: Home, project: Project, own: Container[str], *, with_facts: bool = True) -> str:
    """Return the guide for a session: period, sessions, and moments.

    The lasting facts and open questions follow, those that are in `own`, see `OwnEntries`.
    """
    remembered = days(project.for_counting())
    if not remembered:
        return "memkit keeps a memory of this project from today on; it is empty so far."
    size = _size(home, project, remembered)
    text = f"memkit keeps a memory of this project in {place_of(project)}: {size}. {MOMENTS}"
    if not with_facts:
        return text
    facts, opened = facts_of(project)[:_LOOKUPS], list(_open(project, days(project)))
    own_facts = [words for words in facts if words in own][:MOST_FACTS]
    own_open = [words for words in opened if words in own][:MOST_OPEN]
    if any(words not in own for words in (*facts, *opened)):
        text += FOREIGN
    lines, room = [], QUOTED_CHARACTERS
    for words in (*own_facts, *own_open):
        line = quoted_line(f"- {words}")
        if len(line) <= room:
            room -= len(line)
            lines.append(line)
    if not lines:
        return text
    return text + _QUOTED + "".join(lines) + "</memory>"


def agent_guide(project: Project) -> str:
    """Return the guide for a sub-agent, or "" if nothing is remembered."""
    remembered = days(project.for_counting())
    if not remembered:
        return ""
    return (
        f"memkit keeps a memory of this project ({_span(remembered)}): what was tried, decided, and fixed, "
        "and why. `memkit search WORDS` lists entries on a subject or an error, `memkit expand ID` shows one."
    )


def _size(home: Home, project: Project, names: list[str]) -> str:
    count = plural(len({name[:10] for name in names}), "day")
    return f"{tally(home, project).words} on {count} ({_span(names)})"


def _span(names: list[str]) -> str:
    dates = sorted({name[:10] for name in names})
    return dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"


def _open(project: Project, names: list[str]) -> Iterator[str]:
    """Yield the open questions of the newest days, newest first, but none after which its session went on."""
    left = _LOOKUPS
    ended: set[str] = set()
    for _, text in read_days(project, names[-OPEN_DAYS:], HOOK_BYTES):
        below: list[str] = []  # the questions below the next heading
        for line in reversed(text.split("\n")):
            bullet = read_bullet(line) if OPEN in line else None
            if bullet is not None:
                if bullet.is_verified and bullet.text.startswith(OPEN) and len(below) < left:
                    below.append(bullet.text)
            elif line.startswith("## ") and (session := anchors.parse(line).get("session")):
                if session not in ended:
                    yield from below
                    left -= len(below)
                ended.add(session)
                below = []
                if not left:
                    return
