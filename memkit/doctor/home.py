"""Check the files of the memory home and of the memory: space, owner, modes, links, git, and the clock."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shlex
import shutil
import stat
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from memkit import anchors
from memkit.capture.sessions import Sessions
from memkit.doctor import Finding, Subject, make_finding, split_advice
from memkit.files import MOST_BYTES, PRIVATE_DIRECTORY, PRIVATE_FILE, RefusedFileError, inside
from memkit.home_files import top_names
from memkit.hook.entries import days
from memkit.hook.notices import untrusted_people
from memkit.ipc import spool
from memkit.journal.journal import Journal
from memkit.paths import OFF_TIMES, Home
from memkit.projects import team_files
from memkit.projects.git import is_ignored, tracked_below
from memkit.projects.project import Project, Registry
from memkit.projects.team import upstream_commit
from memkit.state import read_state_or_none
from memkit.text import format_time, plural

NEEDED_BYTES = 50_000_000
"""With less free space, an index update or the next day file may fail."""

WANTED_BYTES = 500_000_000
"""With less free space, the user should make room soon."""

CLOCK_SECONDS = 86_400.0
"""Time zones and clock changes may explain this much."""

# It stops at the next opening mark, so many without an end cost no more than one.
_CONFLICT = re.compile(r"^<{7}(?: [^\n]*)?\n(?:(?!<{7}|>{7})[^\n]*\n)*>{7}", re.MULTILINE)

MAX_NAMED = 5
"""The most refused files that are reported at once."""


def check_writing(subject: Subject) -> Iterator[Finding]:
    """Check that the home and the project's memory can be written, and have free space."""
    places = [subject.home.root]
    memory = next(filter(os.path.isdir, (subject.project.memory, subject.project.root)), None)
    if memory is not None:
        try:
            inside(subject.project.memory, subject.project.root)
        except RefusedFileError:  # `check_memory` reports it
            memory = subject.project.root
        places.append(memory)
    for place in places:
        try:
            with tempfile.TemporaryFile(prefix=".memkit-", dir=place) as file:
                file.write(b"\0")
            free = shutil.disk_usage(place).free
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                yield _unwritable(place, error)
                continue
            free = 0
        if free < WANTED_BYTES:
            code = "disk-full" if free < NEEDED_BYTES else "disk-low"
            yield make_finding(code, place=place, free=f"{free / 1e6:,.0f}")


def _unwritable(place: str, error: OSError) -> Finding:
    fix = f"run `chmod u+rwx {shlex.quote(place)}` as its owner"
    if error.errno == errno.EROFS:
        fix = f"mount the file system of {place} as writable"
    return make_finding("read-only", place=place, error=error.strerror or error, fix=fix)


def check_memory(subject: Subject) -> Iterator[Finding]:
    """Find files of the memory that memkit refuses: links out of it, devices, pipes, and giants."""
    for project in (subject.project, Project.of_user(subject.home)):
        for path, reason in islice(_refused_files(project), MAX_NAMED):
            yield make_finding("memory-refused", path=path, reason=reason)


def _refused_files(project: Project) -> Iterator[tuple[str, str]]:
    try:
        memory = inside(project.memory, project.root)
    except RefusedFileError as error:
        yield project.memory, error.strerror or ""
        return
    above = os.path.dirname(project.memory)
    others = [os.path.join(project.root, name) for name in (OFF_TIMES, ".memkit.toml")]
    others += [os.path.join(above, name) for name in (".gitignore", "journal.lock")]
    for path in filter(os.path.lexists, others):
        if reason := _reason(path, project.root):
            yield path, reason
    yield from _refused_openclaw(project)
    for directory, below, files in os.walk(memory):
        for name in sorted((*below, *files)):
            path = os.path.join(directory, name)
            is_markdown = name.endswith((".md", ".markdown"))
            if (is_markdown or os.path.islink(path)) and (reason := _reason(path, memory)):
                yield path, reason


def _refused_openclaw(project: Project) -> Iterator[tuple[str, str]]:
    """Yield OpenClaw's folder if memkit refuses it, else its refused days, if new days ever went there."""
    if not project.openclaw or not os.path.lexists(project.openclaw):
        return
    try:
        folder = os.path.dirname(project.real_file(os.path.join(project.openclaw, "0000-00-00.md")))
        names = sorted(os.listdir(folder))
    except OSError as error:
        yield project.openclaw, error.strerror or ""
        return
    for path in (os.path.join(project.openclaw, name) for name in names):
        if project.name_at(path):
            try:
                project.real_file(path)
            except RefusedFileError as error:
                yield path, error.strerror or ""
            else:
                if reason := _reason(path, project.openclaw):
                    yield path, reason


def _reason(path: str, root: str) -> str:
    try:
        status = os.stat(inside(path, root))
    except RefusedFileError as error:
        return error.strerror or ""
    except OSError:  # a broken link that stays inside, or deleted meanwhile
        return ""
    if stat.S_ISDIR(status.st_mode):
        return ""
    if not stat.S_ISREG(status.st_mode):
        return "it is not a regular file"
    return f"it is larger than {MOST_BYTES:,} bytes" if status.st_size > MOST_BYTES else ""


def check_conflicts(subject: Subject) -> Iterator[Finding]:
    """Find day files with marks of a merge conflict."""
    journal = Journal(subject.project)
    for day in journal.days():
        if b"<<<<<<<" not in journal.data(f"{day}.md"):  # most of the time was for the pattern
            continue
        text = journal.text(f"{day}.md")
        # A conflict that somebody pasted into a prompt has no anchors.
        places = [one.start() for one in _CONFLICT.finditer(text) if anchors.parse(one[0])]
        for place in places[:1]:
            line = text.count("\n", 0, place) + 1
            yield make_finding("merge-conflict", path=journal.path(day), line=line)


def check_team(subject: Subject) -> Iterator[Finding]:
    """Find files in the team's folder that are not read or are in conflict, and one that waits for trust."""
    root = subject.project.root
    for path, reason in islice(team_files.problems(root), MAX_NAMED):
        yield make_finding("team-file", path=path, reason=reason)
    if names := untrusted_people(subject.home, root):
        yield make_finding("team-not-trusted", root=root, people=plural(len(names), "person", "people"))
    if team_files.is_trusted(subject.home, root) and upstream_commit(root) == "":
        yield make_finding("team-no-upstream", root=root)


def check_git(subject: Subject) -> Iterator[Finding]:
    """Check that git does not see a memory that is not shared."""
    project = subject.project
    if subject.settings.memory.shared or not days(project):
        return
    for memory in filter(None, (project.memory, project.openclaw)):
        tracked = tracked_below(project.root, memory)
        if tracked:
            count, shown = plural(len(tracked), "file"), os.path.relpath(memory, project.root)
            yield make_finding("memory-tracked", count=count, memory=memory, first=tracked[0], folder=shown)
        probe = os.path.join(memory, "2000-01-01.local.md")
        # memkit writes nothing where git tracks files of OpenClaw's, and does not hide them either.
        if not is_ignored(project.root, probe) and not (tracked and memory == project.openclaw):
            yield make_finding("memory-not-ignored", memory=memory, root=project.root, probe=probe)


def check_registry(subject: Subject) -> Iterator[Finding]:
    """Check that the registry of projects can be read."""
    problem = Registry.read(subject.home).problem
    if problem:
        what, fix = split_advice(problem)
        yield make_finding("registry-unreadable", what=what, fix=fix)


def check_sync(subject: Subject) -> Iterator[Finding]:
    """Check that the last sync with the user's other machines worked."""
    jobs = read_state_or_none(os.path.join(subject.home.run, "jobs.json"), 1, dict) or {}
    last = jobs.get("sync", {})
    if subject.settings.sync.place and last.get("failed"):
        yield make_finding("sync-failed", error=last.get("result"))


def check_permissions(subject: Subject) -> Iterator[Finding]:
    """Check that other users of this machine cannot read the home."""
    found = _open_to_others(subject.home)
    if found:
        count = plural(len(found), "file")
        yield make_finding("open-to-others", count=count, home=subject.home.root, first=found[0])


def fix_permissions(subject: Subject) -> str:
    """Remove all permissions of other users. Raise `OSError`."""
    found = _open_to_others(subject.home)
    for path in found:
        with contextlib.suppress(FileNotFoundError):  # deleted since the listing, as old snapshots
            os.chmod(path, PRIVATE_DIRECTORY if os.path.isdir(path) else PRIVATE_FILE)
    return f"closed {plural(len(found), 'file')} to other users"


def _open_to_others(home: Home) -> list[str]:
    """Skip downloads: they are large, public, and partly have the modes that pip gives its files."""
    if os.name != "posix":
        return []
    skipped = {name for name, kinds in top_names().items() if all(kind.is_public for kind in kinds)}
    found = []
    for directory, directories, files in os.walk(home.root):
        if directory == home.root:
            directories[:] = [name for name in directories if name not in skipped]
        for path in (directory, *(os.path.join(directory, name) for name in files)):
            with contextlib.suppress(FileNotFoundError):  # deleted since the listing
                if os.lstat(path).st_mode & 0o077 and not os.path.islink(path):
                    found.append(path)
    return found


def check_clock(subject: Subject) -> Iterator[Finding]:
    """Check that the clock is not before something that memkit already recorded."""
    newest, event = max(_recorded_times(subject), default=(0.0, ""))
    if newest > subject.now + CLOCK_SECONDS:
        now = format_time(subject.now)
        yield make_finding("clock-behind", now=now, event=event, time=format_time(newest))


def _recorded_times(subject: Subject) -> Iterator[tuple[float, str]]:
    for session in Sessions(subject.home):
        yield session.last_event, f"an event of session {session.id}"
    for item in spool.unfinished(subject.home):
        yield spool.time_of(item.record), "a waiting event"
    yield Path(__file__).stat().st_mtime, "memkit's installation"
