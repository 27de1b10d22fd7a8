"""What the files of a git repository tell, read without running git: hooks have no time for that.

Standard library only, Python 3.9 syntax: the hooks import this module.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Collection
from typing import NamedTuple

from memkit.files import inside, make_private_directory, read_head, read_regular, write_durably
from memkit.processes import find_program, no_window

SHORT_HASH = 12
"""Characters kept of a commit's hash."""

_NOT_SET = 1
"""The exit status of `git config --get` for a setting that is not there."""

_PACKED_BYTES = 8 * 1024 * 1024
_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?$")
_REFERENCE = re.compile(r"refs(?:/[^/\0-\x20]+)+$")
_WORKTREE = re.compile(r"^\s*worktree\s*=\s*(.+?)\s*$", re.MULTILINE)


class Head(NamedTuple):
    """What is checked out: the branch and the start of the commit's hash; "" for what is not known."""

    branch: str = ""
    commit: str = ""


def worktree_root(directory: str, ignored: Collection[str] = ()) -> str | None:
    """The main worktree of the repository around `directory`, which is a real path; None if there is none.

    A repository whose root is one of `ignored` counts as none. A submodule is a repository of its own.
    """
    current = _worktree(directory, ignored)
    if current is None:
        return None
    main = _main_worktree(current)
    return current if main is None or main in ignored else main


def worktrees_around(directory: str) -> list[str]:
    """All worktrees that hold `directory`, which is a real path: a submodule lies in another one."""
    found = []
    current = _worktree(directory, ())
    while current is not None:
        found.append(current)
        current = _worktree(current, found)
    return found


def head(directory: str) -> Head:
    """What is checked out in the worktree around `directory`; empty where git's files do not tell."""
    worktree = _worktree(os.path.realpath(directory), ())
    git_directory = None if worktree is None else _git_directory(worktree)
    if git_directory is None:
        return Head()
    said = _read(os.path.join(git_directory, "HEAD")).strip()
    if _HASH.match(said):
        return Head("", said[:SHORT_HASH])
    reference = said.partition("ref:")[2].strip()
    # It becomes a path, so it must be a name as git allows them.
    if not _REFERENCE.match(reference) or ".." in reference:
        return Head()
    commit = _commit(git_directory, reference) or ""
    branch = reference[11:] if reference.startswith("refs/heads/") else ""
    return Head("" if branch == ".invalid" else branch, commit[:SHORT_HASH])


def _worktree(directory: str, ignored: Collection[str]) -> str | None:
    """The nearest directory with a `.git`, `directory` or one above it."""
    current = directory
    while True:
        if os.path.exists(os.path.join(current, ".git")) and current not in ignored:
            return current
        parent = os.path.dirname(current)
        if parent == current:
            return None
        current = parent


def _git_directory(worktree: str) -> str | None:
    """The directory with the worktree's HEAD: its `.git`, or where the file of that name leads."""
    marker = os.path.join(worktree, ".git")
    if os.path.isdir(marker):
        return marker
    found = _read(marker).partition("gitdir:")[2].strip()
    try:
        path = os.path.join(worktree, found)
        return path if found and os.path.isdir(path) else None
    except ValueError:  # no path
        return None


def _common_directory(git_directory: str) -> str | None:
    """The directory that all worktrees share; None for a repository that has no linked ones.

    A linked worktree's `.git` file says `gitdir: <main>/.git/worktrees/<name>`, and the file
    `commondir` there leads to `<main>/.git` (gitrepository-layout(5)).
    """
    said = _read(os.path.join(git_directory, "commondir")).strip()
    try:
        return os.path.realpath(os.path.join(git_directory, said)) if said else None
    except ValueError:  # no path
        return None


def _main_worktree(worktree: str) -> str | None:
    """The main worktree that a linked one belongs to; None if it is none, or nobody knows.

    A bare repository has none, but where it lies hidden in a directory of worktrees, that directory
    has a `.git` that leads to it. That of a submodule stands in the repository's configuration.
    """
    git_directory = _git_directory(worktree)
    common = None if git_directory is None else _common_directory(git_directory)
    if git_directory is None or common is None or not _is_linked(worktree, git_directory, common):
        return None
    above = os.path.dirname(common)
    if os.path.basename(common) == ".git":
        return above
    around = _git_directory(above)
    if around is not None and os.path.realpath(around) == common:
        return above
    configured = _WORKTREE.search(_read(os.path.join(common, "config")))
    if configured is None:
        return None
    main = os.path.realpath(os.path.join(common, configured[1].strip('"')))
    lead = _git_directory(main)
    return main if lead is not None and os.path.realpath(lead) == common else None


def _is_linked(worktree: str, git_directory: str, common: str) -> bool:
    """Return whether the repository at `common` knows `worktree` as one of its own.

    Anybody can write a `.git` file that leads to another repository. Git notes in the repository where
    each worktree is, so that file must name this one, and belong to the same user.
    """
    real = os.path.realpath(git_directory)
    if os.path.dirname(real) != os.path.join(common, "worktrees"):
        return False
    marker = os.path.join(worktree, ".git")
    named = _read(os.path.join(real, "gitdir")).strip()
    try:
        return (
            bool(named)
            and os.path.samefile(os.path.join(real, named), marker)
            and not os.path.islink(marker)
            and os.stat(marker).st_uid == os.stat(real).st_uid
        )
    except (OSError, ValueError):  # moved by hand; ValueError: no path
        return False


def _commit(git_directory: str, reference: str) -> str | None:
    """The hash of the commit that a reference names."""
    places = [git_directory]
    common = _common_directory(git_directory)
    if common is not None:
        places.append(common)
    for place in places:
        said = _read(os.path.join(place, *reference.split("/"))).strip()
        if _HASH.match(said):
            return said
    ending = f" {reference}\n"
    packed = _read(os.path.join(places[-1], "packed-refs"), _PACKED_BYTES)
    end = packed.find(ending)
    said = packed[packed.rfind("\n", 0, end) + 1 : end] if end >= 0 else ""
    return said if _HASH.match(said) else None


def normalise_remote(url: str) -> str:
    """A git remote without protocol, user, port, `.git` and letter case of the host.

    `git@Host:Team/app.git` and `https://host/Team/app` are the same project: `host/Team/app`.
    """
    url = url.strip()
    match = re.match(
        r"^[a-z][a-z0-9+.-]*://(?:[^/]*@)?([^/:@]+)(?::\d+)?/(.*)$", url, re.IGNORECASE
    )
    if not match:
        match = re.match(r"^(?:[^@/]+@)?([^/:@]+):(?!\\)(.*)$", url)
    if not match:
        return _without_git(url.rstrip("/")).rstrip("/")
    host, path = match.groups()
    return "{}/{}".format(host.lower(), _without_git(path.strip("/"))).rstrip("/")


def _without_git(path: str) -> str:
    return path[:-4] if path.endswith(".git") else path


def remote_of(root: str) -> str | None:
    """Return the remote `origin` of the repository at `root`, as git's configuration has it, with includes.

    Return "" if there is none, and None if that cannot be told: git is missing, fails, or takes too long.
    """
    try:
        os.stat(os.path.join(root, ".git"))
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError:
        return None
    answer = run_git(root, "config", "--get", "remote.origin.url")
    if answer is None or answer[0] not in (0, _NOT_SET):
        return None
    return answer[1].decode("utf-8", "replace").strip()


EXCLUDED = (
    "# memkit keeps its memory out of git; `memkit config set memory.shared true` shares it.\n"
    "/.memkit/\n"
)
"""What `keep_out_of_git` adds."""

GIT_SECONDS = 5.0
"""How long git may take to answer."""

_SILENCE_SECONDS = 60.0
"""How long git is not asked about a repository in which it did not answer."""

_silent_until: dict[str, float] = {}
_tracked: dict[tuple[str, str], tuple[tuple[int, int], frozenset[str]]] = {}


def is_tracked(root: str, path: str) -> bool:
    """Return whether git tracks a file of the repository at `root`.

    Not for hooks: it runs git, once and whenever git's index has changed.
    """
    git_directory = _git_directory(root)
    if git_directory is None:
        return False
    try:
        status = os.stat(os.path.join(git_directory, "index"))
    except OSError:  # nothing was ever added
        return False
    state = status.st_mtime_ns, status.st_size
    directory, name = os.path.split(path)
    known = _tracked.get((root, directory))
    if known is None or known[0] != state:
        # All of the directory at once: an import writes hundreds of days.
        below = os.path.relpath(os.path.realpath(directory), os.path.realpath(root))
        found = [os.path.split(one) for one in tracked_below(root, directory)]
        names = frozenset(last for first, last in found if os.path.normpath(first) == below)
        known = _tracked[root, directory] = (state, names)
    return name in known[1]


def tracked_below(root: str, path: str) -> list[str]:
    """The files that git tracks at or below `path`, in the repository at `root`. Runs git."""
    answer = run_git(root, "ls-files", "-z", "--", ":(literal)" + path)
    if answer is None or answer[0]:
        return []
    return [os.fsdecode(name) for name in answer[1].split(b"\0") if name]


def is_ignored(root: str, path: str) -> bool:
    """Return whether git ignores `path` in the repository at `root`, or there is none. Runs git.

    False if git does not answer.
    """
    if _git_directory(root) is None:
        return True
    answer = run_git(root, "check-ignore", "-q", "--no-index", path)
    return answer is not None and answer[0] == 0


def keep_out_of_git(root: str, *, is_wanted: bool) -> None:
    """Have git's own list of excluded files name `.memkit`, or not. Raise `OSError`.

    A repository can bring ignore files, but not that list. Nothing is written through a `.git` file that
    only claims to lead to another repository.
    """
    place = _exclude_directory(root)
    if place is None:
        return
    path = inside(os.path.join(place, "info", "exclude"), place)
    try:
        text = read_regular(path, _PACKED_BYTES).decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        text = ""
    if (EXCLUDED in text) == is_wanted:
        return
    if is_wanted:
        text += ("\n" if text and not text.endswith("\n") else "") + EXCLUDED
    else:
        text = text.replace(EXCLUDED, "")
    make_private_directory(os.path.dirname(path))
    write_durably(path, text.encode("utf-8", "surrogateescape"), 0o644)


def _exclude_directory(root: str) -> str | None:
    """The directory with `info/exclude` of the worktree at `root`; None if it may be another's."""
    marker = os.path.join(root, ".git")
    git_directory = _git_directory(root)
    if git_directory is None or os.path.islink(marker):
        return None
    common = _common_directory(git_directory)
    if os.path.isdir(marker):
        return marker if common is None and os.path.isfile(os.path.join(marker, "HEAD")) else None
    if common is not None:
        return common if _is_linked(root, git_directory, common) else None
    configured = _WORKTREE.search(_read(os.path.join(git_directory, "config")))
    try:
        is_own = configured is not None and os.path.samefile(
            os.path.join(git_directory, configured[1].strip('"')), root
        )
        return git_directory if is_own and os.stat(marker).st_uid == os.stat(git_directory).st_uid else None
    except (OSError, ValueError):
        return None


def run_git(root: str, *arguments: str) -> tuple[int, bytes] | None:
    """Run git in the repository at `root`; return its status and output, None if it did not run.

    Not for hooks. The settings of a repository may name programs, and a session's environment may point
    git elsewhere: neither is heeded.
    """
    import subprocess  # not needed by hooks, which count milliseconds

    git = find_program("git")
    if git is None or time.monotonic() < _silent_until.get(root, 0.0):
        return None
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment.update(
        GIT_OPTIONAL_LOCKS="0", GIT_TERMINAL_PROMPT="0", GIT_NO_LAZY_FETCH="1", LC_ALL="C"
    )
    settings = ["core.fsmonitor=false", "core.hooksPath=" + os.devnull, "protocol.allow=never"]
    settings.append("safe.directory=*")  # in a container the repository can be another user's
    options = [part for setting in settings for part in ("-c", setting)]
    try:
        answer = subprocess.run(
            [git, *options, "-C", root, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GIT_SECONDS,
            check=False,
            env=environment,
            **no_window(),
        )
    except OSError:
        return None
    except subprocess.TimeoutExpired:  # a pipe among git's files, say; a command asks more than once
        _silent_until[root] = time.monotonic() + _SILENCE_SECONDS
        return None
    return answer.returncode, answer.stdout


def _read(path: str, most: int = 4096) -> str:
    """The start of a file; empty if it cannot be read."""
    try:
        # HEAD may be a link, as very old versions of git made it.
        return read_head(os.path.realpath(path), most).decode("utf-8", "replace")
    except (OSError, ValueError):  # ValueError: no path
        return ""
