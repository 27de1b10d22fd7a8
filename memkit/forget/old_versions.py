"""Which files hold what is to be forgotten as it stood before a compaction or a restore replaced it.

They go whole: they are copies, kept in case a person wants something back, and this they do not want.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from memkit import anchors
from memkit.archive.archive import Archive
from memkit.capture.sessions import Sessions
from memkit.errors import ArchiveError
from memkit.forget.facts import rests_on
from memkit.forget.periods import is_of_period
from memkit.journal.day_edits import Removal, bullets
from memkit.journal.day_file import DayFile
from memkit.journal.facts import FactFile
from memkit.journal.old_versions import original_name, replaced_files
from memkit.paths import Home
from memkit.privacy.tombstones import Forgotten


def old_versions(
    home: Home, forgotten: Forgotten, names: Collection[str], sessions: Collection[str]
) -> Iterator[Path]:
    """The copies that hold some of `forgotten`; `names` are those of files that lose text without an id,
    `sessions` (as in anchors) those of which something goes. Raises `OSError`.
    """
    wholes = {period.project for period in forgotten.periods if period.whole}
    roots = {*forgotten.roots, *forgotten.only, *(period.project for period in forgotten.periods)} - {""}
    of_project = {path: root for root in sorted(roots) for path in replaced_files(home, {root})}
    for path in replaced_files(home, None):
        root = of_project.get(path, "")
        periods = tuple(one for one in forgotten.periods if one.project in ("", root))
        own = msgspec.structs.replace(forgotten.within(root), periods=periods)
        lost = names if root in forgotten.roots else ()
        if root in wholes or _holds(path, original_name(path), own, lost):
            yield path
    for root in forgotten.only:  # of what follows it is not known of which project it is
        forgotten = forgotten.within(root)
    for kept in sorted(Path(home.before_restore).glob("*")):  # laid out like a backup
        yield from _of_home(Home(str(kept / "home")), forgotten, names, sessions)
        for path in sorted((kept / "projects").rglob("*.md")):
            if wholes or _holds(path, path.name, forgotten, names):
                yield path


def _of_home(
    home: Home, forgotten: Forgotten, names: Collection[str], sessions: Collection[str]
) -> Iterator[Path]:
    archive, states = Archive(home), Sessions(home)
    for session in archive.sessions():
        try:
            turns = list(archive.versions(session))
            holds = any(forgotten.covers(one.id, one.project, session, one.time) for one in turns)
        except ArchiveError:  # what is in it cannot be told
            holds = True
        if holds:
            yield archive.path(session)
    harmless = {
        states.path(state.id)
        for state in states
        if anchors.safe(state.id) not in sessions and not is_of_period(state, forgotten)
    }
    yield from sorted(set(Path(home.sessions).glob("*.json")) - harmless)
    yield from old_versions(home, forgotten, names, sessions)


def _holds(path: Path, name: str, forgotten: Forgotten, names: Collection[str]) -> bool:
    """Whether a copy of the markdown file `name` holds some of it. Of which project it is is not known."""
    if name in names:
        return True
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    content = DayFile(text)
    if any(True for _ in bullets(content, Removal(forgotten.turns, forgotten.grips))):
        return True
    for _, fact in FactFile(text, name).everywhere():
        cited = fact.fact.citations
        if rests_on(fact, forgotten) or cited.is_full or (names and cited.chunks):
            return True
    periods = forgotten.periods
    ended = [section.pairs.get("session", "") for section in content.sections]
    return (
        any(section.pairs.get("turn") in forgotten.turns for section in content.sections)
        or any(section.pairs.get("note") in forgotten.notes for section in content.sections)
        or any(period.session in ended for period in periods if period.session)
        or any(_is_in(name, period.since, period.until) for period in periods if not period.session)
    )


def _is_in(name: str, since: float, until: float) -> bool:
    """Whether the file of that name is of a day of which a part lies between the two."""
    try:
        start = datetime.strptime(name.replace(".local.", "."), "%Y-%m-%d.md").astimezone()
    except ValueError:
        return False
    return start.timestamp() < until and since < (start + timedelta(days=1)).timestamp()
