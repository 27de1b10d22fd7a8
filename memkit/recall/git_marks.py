"""Marks from git: what has changed in the repository since an entry was written.

A mark warns that an entry may be out of date. It never changes the rank. Paths, commits, and branches that an
entry names are data: they reach git as literal paths behind `--`, as hexadecimal numbers, or not at all.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from memkit import anchors
from memkit.journal.turn_parts import read_parts
from memkit.projects.git import run_together
from memkit.projects.git_files import (
    branches,
    common_directory_of,
    git_directory_of,
    head,
    read_git_file,
    worktree_root,
    worktrees_around,
)
from memkit.recall.results import Answer
from memkit.text import plural

if TYPE_CHECKING:
    from memkit.recall.expand import Section

SECONDS = 0.03
"""The time that git has for all results. What it does not answer in time is not marked."""

MOST_REPOSITORIES = 4
_MOST_PATHS = 100
_MOST_COMMITS = 20
_MOST_CHANGES = 500
_SHOWN_FILES = 2
_PATH_CHARACTERS = 300
_SHALLOW_BYTES = 1024 * 1024

# A path in prose needs an extension: without one, it is hardly ever the name of a file.
_PATH = re.compile(r"(?<![\w/.@:+\\-])(?:[\w.@+-]{1,100}/){0,20}[\w.@+-]{0,100}\.[A-Za-z]\w{0,11}(?![\w/])")
_COMMIT = re.compile(r"(?<![\w./-])(?=[a-f]*\d)[0-9a-f]{7,40}(?![\w-])")
_TIME = re.compile(r"\d\d:\d\d")


class EntryText(NamedTuple):
    """The known parts of an entry: its project's root, its text, ISO date, and branch; "" if unknown.

    `time` is the local time (`HH:MM`) at which a turn began. Without it the entry counts as of the end of its
    day.
    """

    root: str
    text: str
    date: str
    branch: str
    time: str = ""


@dataclass(frozen=True, slots=True)
class GitMarks:
    """The marks of one entry.

    `changed` has the files that the entry names, with the number of commits that changed them since, and
    `deleted` those that are gone. `commits` are those it names that are not on `branch`, which is checked out
    now ("" for none). `gone_branch` is its own branch if that no longer exists, else "".
    """

    changed: dict[str, int] = field(default_factory=dict)
    deleted: tuple[str, ...] = ()
    commits: tuple[str, ...] = ()
    branch: str = ""
    gone_branch: str = ""

    def __bool__(self) -> bool:
        return bool(self.changed or self.deleted or self.commits or self.gone_branch)

    def as_dict(self) -> dict[str, Any]:
        """Return the marks as `--json` prints them: only those there are."""
        value = {
            "changed": self.changed,
            "deleted": list(self.deleted),
            "commits_elsewhere": list(self.commits),
            "gone_branch": self.gone_branch,
        }
        known = {name: one for name, one in value.items() if one}
        return {**known, "line": self.line} if known else {}

    @property
    def line(self) -> str:
        """The marks in words, on one line; "" without any."""
        files = [f"{path} deleted" for path in self.deleted]
        often = sorted(self.changed.items(), key=lambda one: -one[1])
        files += [f"{path} changed in {plural(count, 'commit')}" for path, count in often]
        if more := files[_SHOWN_FILES:]:
            files[_SHOWN_FILES:] = [f"and {plural(len(more), 'more file')}"]
        parts = [", ".join(files)] if files else []
        if self.commits:
            is_are = "is" if len(self.commits) == 1 else "are"
            where = f"on {self.branch}" if self.branch else "part of what is checked out"
            parts.append(f"{', '.join(self.commits)} {is_are} not {where}")
        if self.gone_branch:
            parts.append(f"branch {self.gone_branch} is gone")
        return "; ".join(parts)


def find_marks(
    entries: Sequence[EntryText], directory: str = "", seconds: float | None = None
) -> list[GitMarks]:
    """Return the marks of each entry; empty ones where git is missing, too slow, or has nothing to say.

    In the project of `directory`, the worktree around it counts, otherwise the project's main one.
    `seconds` is the time for git, by default `SECONDS`.
    """
    found = [GitMarks()] * len(entries)
    repositories: dict[str, _Repository] = {}
    for number, entry in enumerate(entries):
        if entry.root not in repositories and len(repositories) < MOST_REPOSITORIES:
            worktree = worktree_of(entry.root, directory)
            if worktree:
                repositories[entry.root] = _Repository(worktree)
        if repository := repositories.get(entry.root):
            repository.add(number, entry)
    asked = [(one, question) for one in repositories.values() for question in one.questions()]
    commands = [(one.worktree, rest) for one, (_, rest) in asked]
    outputs = run_together(commands, SECONDS if seconds is None else seconds)
    for (repository, (name, _)), output in zip(asked, outputs, strict=True):
        if output is not None:
            repository.take(name, output)
    for repository in repositories.values():
        for number, marks in repository.marks():
            found[number] = marks
    return found


def marked(answer: Answer, directory: str = "", seconds: float | None = None) -> Answer:
    """Return `answer` with the marks of its results."""
    entries = []
    for result in answer.results:
        chunk = result.chunk
        time = chunk.heading[:5] if chunk.kind == "turn" else ""
        entries.append(EntryText(result.root, chunk.content, chunk.date, chunk.branch, time))
    found = find_marks(entries, directory, seconds)
    results = [
        replace(one, git=marks.as_dict()) if marks else one
        for one, marks in zip(answer.results, found, strict=True)
    ]
    return replace(answer, results=results)


def marked_sections(sections: Sequence[Section], directory: str = "") -> list[Section]:
    """Return the sections that `memkit expand` shows, with their marks in `git` if there are any."""
    entries = [
        EntryText(
            one.get("root", ""), one["content"], one["date"], one["branch"],
            one["heading"][:5] if one["kind"] == "turn" else "",
        )
        for one in sections
    ]  # fmt: skip
    found = find_marks(entries, directory)
    return [
        {**one, "git": marks.as_dict()} if marks else one
        for one, marks in zip(sections, found, strict=True)
    ]


def named_files(text: str) -> tuple[set[str], set[str]]:
    """Return the files that a text names by their path from the root, and those that a turn edited."""
    calls = [call for call in read_parts(text).file_calls if is_inside(call.path)]
    edited = {os.path.normpath(call.path) for call in calls if call.is_edit}
    prose = {match[0] for match in _PATH.finditer(text) if is_inside(match[0])}
    return {os.path.normpath(path) for path in {call.path for call in calls} | prose}, edited


def named_commits(text: str) -> set[str]:
    """Return the words of a text that may be the hash of a commit, or the beginning of one."""
    return set(_COMMIT.findall(text))


def time_of(date: str, time: str) -> float | None:
    """Return when an entry was written, in seconds since the epoch; None if it has no date."""
    try:
        if _TIME.fullmatch(time):
            return datetime.fromisoformat(f"{date} {time}").timestamp()
        return (datetime.fromisoformat(date) + timedelta(days=1)).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def is_inside(path: str) -> bool:
    """Return whether `path` is relative to the root, stays inside it, and can be an argument of git."""
    if not path.isprintable() or len(path) > _PATH_CHARACTERS or os.path.isabs(path) or "\\" in path:
        return False
    parts = path.split("/")
    return ".." not in parts and parts[0] not in (".git", ".memkit", "~") and bool(path.strip("./"))


def worktree_of(root: str, directory: str) -> str:
    """Return the worktree to ask about the project at `root`; "" if that is not a repository."""
    if directory:
        real = os.path.realpath(directory)
        if worktree_root(real) == root:
            return worktrees_around(real)[0]
    return root if git_directory_of(root) is not None else ""


@dataclass(slots=True)
class _Entry:
    number: int
    since: float | None
    files: set[str]
    edited: set[str]
    commits: set[str]
    branch: str


class _Change(NamedTuple):
    commit: str
    time: float
    status: str


class _Repository:
    """The entries of one repository, the questions to git about them, and its answers."""

    def __init__(self, worktree: str) -> None:
        self.worktree = worktree
        self._branch = head(worktree).branch
        self._entries: list[_Entry] = []
        self._changes: dict[str, list[_Change]] = {}  # newest first
        self._elsewhere: tuple[str, ...] = ()

    def add(self, number: int, entry: EntryText) -> None:
        files, edited = named_files(entry.text)
        since = time_of(entry.date, entry.time)
        branch = entry.branch if entry.branch != "HEAD" and "redacted" not in entry.branch else ""
        commits = named_commits(entry.text)
        self._entries.append(_Entry(number, since, files, edited, commits, branch))

    def questions(self) -> Iterator[tuple[str, list[str]]]:
        """Yield the name and the arguments of each question to git."""
        files: dict[str, None] = {}
        oldest: list[float] = []
        for entry in self._entries:
            if entry.since is not None and entry.files:
                files |= dict.fromkeys(sorted(entry.files))
                oldest.append(entry.since)
        if files:
            # No pager, no signatures, no programs for diffs: a repository's settings name those.
            yield "changes", [
                "--literal-pathspecs", "--no-pager", "log", "-z", f"--max-age={int(min(oldest))}",
                f"--max-count={_MOST_CHANGES}", "--name-status", "--no-renames", "--no-ext-diff",
                "--no-textconv", "--no-color", "--format=tformat:%x01%H %ct", "HEAD", "--",
                *list(files)[:_MOST_PATHS],
            ]  # fmt: skip
        commits = sorted({one for entry in self._entries for one in entry.commits})
        # The ancestors of a shallow clone's commits are unknown.
        if commits and not self._shallow:
            yield "commits", [
                "rev-list", "--ignore-missing", f"--max-count={_MOST_CHANGES}",
                *commits[:_MOST_COMMITS], "--not", "HEAD", "--",
            ]  # fmt: skip

    def take(self, name: str, output: bytes) -> None:
        if name == "changes":
            self._read_changes(os.fsdecode(output))
        else:
            self._elsewhere = tuple(output.decode("ascii", "replace").split())

    def _read_changes(self, output: str) -> None:
        shallow = self._shallow
        commit, time = "", 0.0
        parts = iter(output.split("\0"))
        for part in parts:
            if part.startswith("\x01"):
                commit, _, seconds = part[1:].partition(" ")
                time = float(seconds) if seconds.isdigit() else 0.0
            elif (status := part.strip()) and (path := next(parts, "")) and commit not in shallow:
                self._changes.setdefault(path, []).append(_Change(commit, time, status))

    @property
    def _shallow(self) -> frozenset[str]:
        """The commits at which a shallow clone ends. They seem to add all files."""
        git_directory = git_directory_of(self.worktree)
        if git_directory is None:
            return frozenset()
        common = common_directory_of(git_directory) or git_directory
        return frozenset(read_git_file(os.path.join(common, "shallow"), _SHALLOW_BYTES).split())

    def marks(self) -> Iterator[tuple[int, GitMarks]]:
        own = anchors.safe(self._branch)
        known = None
        if any(entry.branch not in ("", own) for entry in self._entries):
            known = branches(self.worktree)
        # Compared as the day file writes them.
        shown = None if known is None else {"", own, *map(anchors.safe, known)}
        for entry in self._entries:
            changed, deleted = self._files(entry)
            is_gone = shown is not None and entry.branch not in shown
            commits = tuple(
                sorted(one for one in entry.commits if any(long.startswith(one) for long in self._elsewhere))
            )
            gone = entry.branch if is_gone else ""
            yield entry.number, GitMarks(changed, deleted, commits, self._branch, gone)

    def _files(self, entry: _Entry) -> tuple[dict[str, int], tuple[str, ...]]:
        changed: dict[str, int] = {}
        deleted: list[str] = []
        for path in sorted(entry.files):
            since = [one for one in self._changes.get(path, []) if one.time > (entry.since or 0.0)]
            if not since or entry.since is None:
                continue
            is_there = os.path.lexists(os.path.join(self.worktree, path))
            if since[0].status == "D" and not is_there:
                deleted.append(path)
                continue
            others = [one for one in since if not any(map(one.commit.startswith, entry.commits))]
            if path in entry.edited and len(others) == len(since):
                others.pop()  # the first commit after an edit records that edit
            if others:
                changed[path] = len(others)
        return changed, tuple(deleted)
