"""The memory home as files: can it be written, is there room, whose is it, who may read it; and the clock."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from memkit.capture.sessions import Sessions
from memkit.doctor.finding import MEND, Finding, Subject
from memkit.files import MOST_BYTES, PRIVATE_DIRECTORY, PRIVATE_FILE, RefusedFileError, inside
from memkit.hook.project import Project, Registry
from memkit.hook.session_facts import days
from memkit.ipc import spool
from memkit.paths import MEMORY_DIRECTORY, OFF_TIMES, Home
from memkit.projects.git import is_ignored, tracked_below

NEEDED_BYTES = 50_000_000
"""With less room than this an index pass or the next day's memory may fail."""

WANTED_BYTES = 500_000_000
"""With less room than this it is time to make some."""

CLOCK_SECONDS = 86_400.0
"""Time zones and clocks that were set may differ by this much."""

MOST_NAMED = 5
"""Refused files that are named one by one."""

_NOT_LOOKED_INTO = ("env", "models")
"""Derived, large, public, and in part with the modes that pip gives its files."""


def check_writing(subject: Subject) -> Iterator[Finding]:
    """Whether a file can be made in the home and in the project's memory, and how much room is left."""
    for place in _places(subject):
        try:
            with tempfile.TemporaryFile(prefix=".memkit-", dir=place) as file:
                file.write(b"\0")
            free = shutil.disk_usage(place).free
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                yield _unwritable(place, error)
                continue
            free = 0
        yield from _room(place, free)


def _places(subject: Subject) -> list[str]:
    project = subject.project
    memory = next(filter(os.path.isdir, (project.memory, project.root)), None)
    with contextlib.suppress(RefusedFileError):  # `check_memory` tells of it
        inside(project.memory, project.root)
        return [subject.home.root, *([memory] if memory else [])]
    memory = project.root
    return [subject.home.root, *([memory] if memory else [])]


def check_memory(subject: Subject) -> Iterator[Finding]:
    """Whether memkit refuses files of the memory: links out of it, devices, pipes, and giants."""
    for project in (subject.project, Project.of_user(subject.home)):
        refused = list(islice(_refused(project), MOST_NAMED + 1))
        for path, reason in refused[:MOST_NAMED]:
            yield Finding(
                "memory-refused",
                "warning",
                f"memkit does not use {path}: {reason}",
                "nothing is read from it or written to it; if it is the whole memory or today's file, "
                "nothing that is said is kept",
                f"look at it with `ls -l {path}`, and remove or replace it if you did not put it there",
            )
        if len(refused) > MOST_NAMED:
            yield Finding(
                "memory-refused",
                "warning",
                f"memkit does not use more files of {project.memory} than are named here",
                "nothing is read from them or written to them",
                f"look at the memory with `ls -lR {project.memory}`",
            )


def check_git(subject: Subject) -> Iterator[Finding]:
    """Whether git sees a memory that is not shared."""
    project = subject.project
    if subject.settings.memory.shared or not days(project):
        return
    tracked = tracked_below(project.root, project.memory)
    if tracked:
        yield Finding(
            "memory-tracked",
            "warning",
            f"memory.shared is off, but git tracks {_counted(tracked)} of {project.memory}: {tracked[0]}",
            "what is said goes to files beside them, DATE.local.md, which git does not take",
            "ask the owner first: `memkit config set memory.shared true` commits all of the memory, "
            f"and `git rm -r --cached {MEMORY_DIRECTORY}` takes it out of git for everybody",
        )
    probe = os.path.join(project.memory, "2000-01-01.local.md")
    if not is_ignored(project.root, probe):
        yield Finding(
            "memory-not-ignored",
            "warning",
            f"git does not ignore {project.memory}, and memory.shared is off",
            "`git add -A` takes what was said into the next commit",
            f"find the pattern that lets it in: `git -C {project.root} check-ignore -v --no-index {probe}`",
        )


def _refused(project: Project) -> Iterator[tuple[str, str]]:
    """Each file of a memory that is not used, and why."""
    try:
        memory = inside(project.memory, project.root)
    except RefusedFileError as error:
        yield project.memory, error.strerror or ""
        return
    beside = [os.path.join(project.root, name) for name in (OFF_TIMES, ".memkit.toml")]
    above = os.path.dirname(project.memory)
    beside += [os.path.join(above, name) for name in (".gitignore", "journal.lock")]
    for path in filter(os.path.lexists, beside):
        if reason := _reason(path, project.root):
            yield path, reason
    for directory, below, files in os.walk(memory):
        for name in sorted((*below, *files)):
            path = os.path.join(directory, name)
            is_markdown = name.endswith((".md", ".markdown"))
            if (is_markdown or os.path.islink(path)) and (reason := _reason(path, memory)):
                yield path, reason


def _reason(path: str, root: str) -> str:
    """Why a file is refused; "" if it is not."""
    try:
        status = os.stat(inside(path, root))
    except RefusedFileError as error:
        return error.strerror or ""
    except OSError:  # a link that leads nowhere inside, or gone meanwhile
        return ""
    if stat.S_ISDIR(status.st_mode):
        return ""
    if not stat.S_ISREG(status.st_mode):
        return "it is no regular file"
    return f"it is larger than {MOST_BYTES:,} bytes" if status.st_size > MOST_BYTES else ""


def _unwritable(place: str, error: OSError) -> Finding:
    if error.errno == errno.EROFS:
        fix = f"mount the file system of {place} writable, or set MEMKIT_HOME to another place"
    else:
        fix = f"`chmod -R u+rwX {place}`, as the user it belongs to"
    return Finding(
        "read-only",
        "error",
        f"{place} cannot be written: {error.strerror or error}",
        "nothing that is said or done is kept",
        fix,
    )


def _room(place: str, free: int) -> Iterator[Finding]:
    if free >= WANTED_BYTES:
        return
    is_full = free < NEEDED_BYTES
    yield Finding(
        "disk-full" if is_full else "disk-low",
        "error" if is_full else "warning",
        f"the disk of {place} has {free / 1e6:,.0f} MB left",
        "nothing that is said or done is kept" if is_full else "soon nothing more can be kept",
        "make room there, or set MEMKIT_HOME to another disk",
    )


def check_registry(subject: Subject) -> Iterator[Finding]:
    """Whether what is said about projects can be read."""
    problem = Registry.read(subject.home).problem
    if problem:
        what, _, fix = problem.partition("; ")
        yield Finding(
            "registry-unreadable",
            "warning",
            what,
            "links, names and moves of projects count for nothing meanwhile: directories that share a "
            "memory write to their own",
            fix,
        )


def check_owner(subject: Subject) -> Iterator[Finding]:
    """Whether all of the home belongs to who uses it."""
    if sys.platform == "win32":  # there a file's owner has no number
        return
    home = subject.home
    owner = os.lstat(home.root).st_uid
    user = os.geteuid()
    if owner != user:
        yield Finding(
            "home-of-another",
            "error" if user else "warning",
            f"{home.root} belongs to the user {owner}, and this is {user}",
            "files that are made now will be closed to its owner",
            "run memkit as its owner, or set MEMKIT_HOME to a place of your own",
        )
    others = _of_others(home, owner)
    if others:
        yield Finding(
            "wrong-owner",
            "error",
            f"{_counted(others)} in {home.root} belong to another user than the directory: {others[0]}",
            "memkit cannot read or replace them, as after it was run with sudo",
            f"`sudo chown -R {owner} {home.root}`" if user else MEND,
            fixable=not user,
        )


def mend_owner(subject: Subject) -> str:
    """Give everything to the owner of the home; only root can. Raises `OSError`."""
    if sys.platform == "win32":  # where nothing is found to mend
        raise NotImplementedError
    owner = os.lstat(subject.home.root)
    others = _of_others(subject.home, owner.st_uid)
    for path in others:
        os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)
    return f"{_counted(others)} given to the user {owner.st_uid}"


def _of_others(home: Home, owner: int) -> list[str]:
    return [path for path, status in _walk(home, ("env", "models")) if status.st_uid != owner]


def check_permissions(subject: Subject) -> Iterator[Finding]:
    """Whether other users of this machine can read the home."""
    found = _open_to_others(subject.home)
    if found:
        yield Finding(
            "open-to-others",
            "warning",
            f"other users may read or change {_counted(found)} in {subject.home.root}: {found[0]}",
            "what you and Claude said is not yours alone",
            MEND,
            fixable=True,
        )


def mend_permissions(subject: Subject) -> str:
    """Take all rights from others. Raises `OSError`."""
    found = _open_to_others(subject.home)
    for path in found:
        with contextlib.suppress(FileNotFoundError):  # gone since the listing, as old snapshots
            os.chmod(path, PRIVATE_DIRECTORY if os.path.isdir(path) else PRIVATE_FILE)
    return f"{_counted(found)} closed to other users"


def _open_to_others(home: Home) -> list[str]:
    if os.name != "posix":
        return []
    return [
        path
        for path, status in _walk(home, _NOT_LOOKED_INTO)
        if status.st_mode & 0o077 and not stat.S_ISLNK(status.st_mode)
    ]


def _walk(home: Home, left_out: tuple[str, ...]) -> Iterator[tuple[str, os.stat_result]]:
    """Everything in the home with its status, the home itself first; links are not followed."""
    yield home.root, os.lstat(home.root)
    for directory, directories, files in os.walk(home.root):
        if directory == home.root:
            directories[:] = [name for name in directories if name not in left_out]
        for name in (*directories, *files):
            path = os.path.join(directory, name)
            try:
                yield path, os.lstat(path)
            except FileNotFoundError:  # gone since the listing
                continue


def _counted(paths: list[str]) -> str:
    return "1 file" if len(paths) == 1 else f"{len(paths)} files"


def check_clock(subject: Subject) -> Iterator[Finding]:
    """Whether the clock stands before what was already remembered."""
    newest, what = max(_times(subject), default=(0.0, ""))
    if newest > subject.now + CLOCK_SECONDS:
        yield Finding(
            "clock-behind",
            "error",
            f"the clock says {_day(subject.now)}, but {what} is of {_day(newest)}",
            "turns go to wrong days, and what is due waits",
            "set the clock; on Linux `timedatectl set-ntp true`",
        )


def _times(subject: Subject) -> Iterator[tuple[float, str]]:
    """What happened, in seconds since the epoch, as far as memkit has noted when."""
    for session in Sessions(subject.home):
        yield session.last_event, f"an event of session {session.id}"
    for item in spool.unfinished(subject.home):
        yield spool.time_of(item.record), "a waiting event"
    yield Path(__file__).stat().st_mtime, "the installed memkit"


def _day(seconds: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(seconds))
