"""Marks from git: what has changed in the repository since an entry was written.

A mark warns that an entry may be out of date. It never changes the rank. Paths, commits, and branches that an
entry names are data: they reach git as literal paths behind `--`, as hexadecimal numbers, or not at all.

A thread reads the history of what is checked out, once. A search waits a moment for it; a later one has it.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from memkit import anchors
from memkit.errors import MemkitError
from memkit.files import read_regular
from memkit.journal.turn_parts import read_parts
from memkit.projects.git import git_output
from memkit.projects.git_files import (
    branches,
    common_directory_of,
    git_directory_of,
    head,
    read_git_file,
    worktree_root,
    worktrees_around,
)
from memkit.search.results import Answer
from memkit.text import plural

if TYPE_CHECKING:
    from memkit.browse.expand import Section

SECONDS = 0.5
"""Longest wait of a search for the history of a repository, and for each of two quick questions to git."""

MOST_REPOSITORIES = 4
_HISTORY_SECONDS = 30.0
_MOST_HISTORIES = 8
_MOST_PATHS = 100
_MOST_COMMITS = 20
_MOST_CHANGES = 5000
_SHOWN_FILES = 2
_PATH_CHARACTERS = 300
_SHALLOW_BYTES = 1024 * 1024
_COMPARED_BYTES = 1024 * 1024
_HISTORY_BYTES = 32 * 1024 * 1024

_RETRY_SECONDS = 60.0
"""A history that git could not give is not asked for again within this time."""

_OWN_SECONDS = 3600.0
"""A file that was edited within this time after an entry that edits it is that entry's own work."""

_DEFAULT_BRANCHES = {"main", "master", "trunk", "develop"}

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

    `changed` has the files that the entry names, with the number of commits that changed more than their
    white space since. `renamed` has their present names, `deleted` those that are gone, and `uncommitted`
    those with changes that are not committed. `commits` are those it names that are not on `branch`, which is
    checked out now ("" for none). `gone_branch` is its own branch if that no longer exists, else "".
    """

    changed: dict[str, int] = field(default_factory=dict)
    deleted: tuple[str, ...] = ()
    renamed: dict[str, str] = field(default_factory=dict)
    uncommitted: tuple[str, ...] = ()
    commits: tuple[str, ...] = ()
    branch: str = ""
    gone_branch: str = ""

    def __bool__(self) -> bool:
        return bool(self.line)

    def as_dict(self) -> dict[str, Any]:
        """Return the marks as `--json` prints them: only those there are."""
        value = {
            "changed": self.changed,
            "deleted": list(self.deleted),
            "renamed": self.renamed,
            "uncommitted": list(self.uncommitted),
            "commits_elsewhere": list(self.commits),
            "gone_branch": self.gone_branch,
            "line": self.line,
        }
        return {name: one for name, one in value.items() if one}

    @property
    def line(self) -> str:
        """The marks in words, on one line; "" without any."""
        files = [f"{path} deleted" for path in self.deleted]
        for path, count in sorted(self.changed.items(), key=lambda one: -one[1]):
            files.append(f"{self._name(path)} changed in {plural(count, 'commit')}")
        files += [self._name(path) for path in self.renamed if path not in self.changed]
        files += [f"{path} has uncommitted changes" for path in self.uncommitted]
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

    def _name(self, path: str) -> str:
        return f"{path} (now {self.renamed[path]})" if path in self.renamed else path


def find_marks(
    entries: Sequence[EntryText], directory: str = "", seconds: float | None = None
) -> list[GitMarks]:
    """Return the marks of each entry; empty ones where git is missing or has nothing to say.

    In the project of `directory`, the worktree around it counts, otherwise the project's main one. Wait
    `seconds` for the history of each repository, by default `SECONDS`.
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
    ends = time.monotonic() + (SECONDS if seconds is None else seconds)
    for repository in repositories.values():
        for number, marks in repository.marks(ends):
            found[number] = marks
    # In a repository that deletes every merged branch, a mark on each line tells a reader nothing.
    if len(found) > 1 and all(marks.gone_branch for marks in found):
        found = [replace(marks, gone_branch="") for marks in found]
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
        {**one, "git": marks.as_dict()} if marks else one for one, marks in zip(sections, found, strict=True)
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
    since: float
    files: list[str]
    edited: set[str]
    commits: set[str]
    branch: str


class _Change(NamedTuple):
    """One commit's change of a file. Later commits have higher numbers; `new_name` is "" without a rename."""

    number: int
    commit: str
    time: float
    is_rewrite: bool
    new_name: str


class _History:
    """The changes of all commits up to `commit` since a time, read from git in a thread."""

    def __init__(self, worktree: str, commit: str, since: float, earlier: _History | None) -> None:
        self.commit = commit
        self.since = since
        self.changes: dict[str, list[_Change]] = {}  # oldest first
        self.failed_at = 0.0
        self._commits = 0
        self._worktree = worktree
        self._thread = threading.Thread(target=self._read, args=[earlier], name="git-history", daemon=True)
        self._thread.start()

    def wait(self, seconds: float) -> bool:
        """Return whether the history is known within this time."""
        self._thread.join(max(0.0, seconds))
        return not self._thread.is_alive()

    def _read(self, earlier: _History | None) -> None:
        revisions, changes, count = self.commit, dict[str, list[_Change]](), 0
        if earlier is not None and earlier.wait(_HISTORY_SECONDS) and self._follows(earlier):
            revisions = f"{earlier.commit}..{self.commit}"
            changes, count = {**earlier.changes}, earlier._commits
        # No programs for diffs: a repository's settings name those. No paths: git finds a rename only if it
        # sees both names.
        log = git_output(
            self._worktree, "log", "-z", f"--max-age={int(self.since)}", f"--max-count={_MOST_CHANGES}",
            "--numstat", "-w", "-M", "--no-ext-diff", "--no-textconv", "--no-color",
            "--format=tformat:%x01%H %ct", revisions, "--", seconds=_HISTORY_SECONDS,
        )  # fmt: skip
        if log is None or len(log) > _HISTORY_BYTES:
            self.failed_at = time.monotonic()
            return
        output = os.fsdecode(log)
        self._commits = count + output.count("\x01")
        for path, change in reversed([*_changes(output, self._commits, _shallow(self._worktree))]):
            changes[path] = [*changes.get(path, ()), change]
        self.changes = changes

    def _follows(self, earlier: _History) -> bool:
        """Return whether this history extends an earlier one, as after a commit, but not after a rebase."""
        if earlier.failed_at or earlier.since > self.since:
            return False
        question = ("merge-base", "--is-ancestor", earlier.commit, self.commit)
        return git_output(self._worktree, *question, seconds=SECONDS) is not None

    def serves(self, commit: str, since: float) -> bool:
        """Return whether it covers the time up to `commit`, or failed too recently to be read again."""
        is_due = 0 < self.failed_at < time.monotonic() - _RETRY_SECONDS
        return self.commit == commit and self.since <= since and not is_due


_histories: dict[str, _History] = {}
_lock = threading.Lock()


def _history(worktree: str, commit: str, since: float) -> _History | None:
    """Return the history up to `commit`, which is checked out, as it is known or being read.

    Return None if nothing is committed yet.
    """
    if not commit:  # git keeps its references in a form that only git reads
        name = git_output(worktree, "rev-parse", "--verify", "-q", "HEAD", seconds=SECONDS)
        commit = (name or b"").decode("ascii", "replace").strip()
    if not commit:
        return None
    with _lock:
        known = _histories.pop(worktree, None)
        if known is None or not known.serves(commit, since):
            known = _History(worktree, commit, min(since, known.since) if known else since, known)
        while len(_histories) >= _MOST_HISTORIES:
            del _histories[next(iter(_histories))]
        _histories[worktree] = known
    return known


def _changes(output: str, last: int, shallow: Collection[str]) -> Iterator[tuple[str, _Change]]:
    """Yield each file that a commit of git's log changed, newest commit first, which has number `last`."""
    number, commit, seconds = last + 1, "", 0.0
    parts = iter(output.split("\0"))
    for part in parts:
        if part.startswith("\x01"):
            commit, _, when = part[1:].partition(" ")
            number, seconds = number - 1, float(when) if when.isdigit() else 0.0
        elif part.count("\t") >= 2:
            added, removed, path = part.strip("\n").split("\t", 2)
            new_name = ""
            if not path:  # a rename: both names follow
                path, new_name = next(parts, ""), next(parts, "")
            if path and commit not in shallow:
                is_rewrite = (added, removed) != ("0", "0")  # a change of white space has no lines
                yield path, _Change(number, commit, seconds, is_rewrite, new_name)


def _shallow(worktree: str) -> frozenset[str]:
    """Return the commits at which a shallow clone ends. They seem to add all files."""
    git_directory = git_directory_of(worktree)
    if git_directory is None:
        return frozenset()
    common = common_directory_of(git_directory) or git_directory
    return frozenset(read_git_file(os.path.join(common, "shallow"), _SHALLOW_BYTES).split())


class _Repository:
    """The entries of one repository, and their marks."""

    def __init__(self, worktree: str) -> None:
        self.worktree = worktree
        self._head = head(worktree)
        self._is_sparse = os.path.lexists(
            os.path.join(git_directory_of(worktree) or "", "info", "sparse-checkout")
        )
        self._entries: list[_Entry] = []

    def add(self, number: int, entry: EntryText) -> None:
        since = time_of(entry.date, entry.time)
        files, edited = named_files(entry.text) if since is not None else (set(), set())
        branch = entry.branch if entry.branch != "HEAD" and "redacted" not in entry.branch else ""
        commits = named_commits(entry.text)
        self._entries.append(_Entry(number, since or 0.0, sorted(files), edited, commits, branch))

    def marks(self, ends: float) -> list[tuple[int, GitMarks]]:
        """Return the marks of each entry, by its number. Wait for the history until `ends`."""
        since = min((entry.since for entry in self._entries if entry.files), default=None)
        history = None if since is None else _history(self.worktree, self._head.commit, since)
        elsewhere = self._commits_elsewhere()
        unsaved = self._uncommitted()
        branches_here = self._branches()
        changes = history.changes if history and history.wait(ends - time.monotonic()) else {}
        found = []
        for entry in self._entries:
            commits = sorted(one for one in entry.commits if any(full.startswith(one) for full in elsewhere))
            is_gone = branches_here is not None and entry.branch not in branches_here
            marks = GitMarks(
                commits=tuple(commits), branch=self._head.branch, gone_branch=entry.branch if is_gone else ""
            )
            found.append((entry.number, self._with_files(marks, entry, changes, unsaved)))
        return found

    def _commits_elsewhere(self) -> list[str]:
        """Return the commits that an entry names and that are not part of what is checked out."""
        named = sorted({one for entry in self._entries for one in entry.commits})[:_MOST_COMMITS]
        # The ancestors of a shallow clone's commits are unknown.
        if not named or _shallow(self.worktree):
            return []
        output = git_output(
            self.worktree, "rev-list", "--ignore-missing", f"--max-count={_MOST_CHANGES}", *named,
            "--not", "HEAD", "--", seconds=SECONDS,
        )  # fmt: skip
        return (output or b"").decode("ascii", "replace").split()

    def _branches(self) -> set[str] | None:
        """Return the branches that are not gone, as day files write them; None if that is unknown."""
        present = {"", anchors.safe(self._head.branch), *_DEFAULT_BRANCHES}
        if all(entry.branch in present for entry in self._entries):
            return present
        known = branches(self.worktree)
        return None if known is None else present | {anchors.safe(one) for one in known}

    def _uncommitted(self) -> dict[str, float]:
        """Return the files that differ from the last commit, with the time of their last change."""
        times: dict[str, float] = {}
        for entry in self._entries:
            for path in entry.files:
                try:
                    written = os.lstat(os.path.join(self.worktree, path)).st_mtime
                except OSError:
                    written = time.time()  # if git knows it, it was deleted
                if written > entry.since and len(times) < _MOST_PATHS:
                    times[path] = written
        if not times:
            return {}
        names = self._ask("--literal-pathspecs", "ls-tree", "-z", "HEAD", "--", *times)
        lines = (name.partition("\t") for name in names)
        changed = [
            path for about, _, path in lines
            if path in times and not self._is_committed(path, about.split()[-1])
        ]  # fmt: skip
        if changed:  # git itself changes the text of some files, as of those in LFS
            found = self._ask("check-attr", "-z", "filter", "ident", "working-tree-encoding", "--", *changed)
            values = zip(found[::3], found[2::3], strict=False)
            converted = {path for path, value in values if value not in ("unspecified", "unset")}
            changed = [path for path in changed if path not in converted]
        return {path: times[path] for path in changed}

    def _ask(self, *arguments: str) -> list[str]:
        """Return the parts of git's answer to a quick question; none if it fails."""
        output = git_output(self.worktree, *arguments, seconds=SECONDS) or b""
        return os.fsdecode(output).split("\0")[:-1]

    def _is_committed(self, path: str, blob: str) -> bool:
        """Return whether a file is the blob of this hash, but for line ends, or is not text.

        `git diff` would run the filters that a repository names.
        """
        try:
            content = read_regular(os.path.join(self.worktree, path), _COMPARED_BYTES)
        except FileNotFoundError:
            return False
        except (OSError, MemkitError):
            return True
        algorithm = "sha1" if len(blob) == 40 else "sha256"
        hashes = {
            hashlib.new(algorithm, b"blob %d\0" % len(text) + text, usedforsecurity=False).hexdigest()
            for text in (content, content.replace(b"\r\n", b"\n"))
        }
        return blob in hashes or b"\0" in content

    def _with_files(
        self, marks: GitMarks, entry: _Entry, changes: dict[str, list[_Change]], unsaved: dict[str, float]
    ) -> GitMarks:
        changed, renamed, deleted, uncommitted = {}, {}, [], []
        for path in entry.files:
            name, rewrites = _follow(changes, path, entry.since)
            is_there = os.path.lexists(os.path.join(self.worktree, name))
            if not is_there:
                if (rewrites or path in unsaved) and not self._is_sparse:
                    deleted.append(path)
                continue
            others = [one for one in rewrites if not any(map(one.startswith, entry.commits))]
            if path in entry.edited and others and len(others) == len(rewrites):
                others.pop(0)  # the first commit after an edit records that edit
            if others:
                changed[path] = len(others)
            elif unsaved.get(path, 0.0) > entry.since + (_OWN_SECONDS if path in entry.edited else 0.0):
                uncommitted.append(path)
            if name != path:
                renamed[path] = name
        return replace(
            marks, changed=changed, renamed=renamed, deleted=tuple(deleted), uncommitted=tuple(uncommitted)
        )


def _follow(changes: dict[str, list[_Change]], path: str, since: float) -> tuple[str, list[str]]:
    """Return the present name of a file, and the commits after `since` that rewrote it, oldest first."""
    name, last = path, 0
    rewrites: list[str] = []
    while True:
        for change in changes.get(name, ()):
            if change.time <= since or change.number <= last:
                continue
            if change.is_rewrite:
                rewrites.append(change.commit)
            if change.new_name:
                name, last = change.new_name, change.number
                break
        else:
            return name, rewrites
