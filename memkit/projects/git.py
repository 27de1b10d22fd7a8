"""Ask git about a repository, and keep the memory out of git. `git_files` reads files instead."""

from __future__ import annotations

import atexit
import getpass
import os
import re
import subprocess
import time
from collections.abc import Sequence

from memkit.files import inside, make_private_directory, read_regular, write_durably
from memkit.paths import OPENCLAW_DAYS
from memkit.processes import find_program, no_window
from memkit.projects.git_files import git_directory_of, own_git_directory
from memkit.text import one_line

EXCLUDED = (
    "# memkit keeps its memory out of git; `memkit config set memory.shared true` shares it.\n"
    "/.memkit/*\n"
    "!/.memkit/team/\n"
)
"""What `keep_out_of_git` adds."""

EXCLUDED_LOCK = "/.memkit/journal.lock\n"
"""What `keep_out_of_git` adds if the memory is shared. The repository's own ignore files may lack it."""

EXCLUDED_DAYS = (
    "# memkit keeps the days in memory/ out of git; `memkit config set memory.shared true` shares them.\n"
    "/memory/\n"
)
"""What `keep_out_of_git` adds if new days go to OpenClaw's folder."""

AUTHOR_CHARACTERS = 80

GIT_SECONDS = 5.0
"""Longest wait for an answer from git."""

_PAUSE_SECONDS = 60.0
"""Pause for a repository in which git did not answer."""

_NOT_SET = 1
"""The exit status of `git config --get` for a setting that does not exist."""

_EXCLUDE_BYTES = 8 * 1024 * 1024

_paused_until: dict[str, float] = {}
_tracked: dict[tuple[str, str], tuple[tuple[int, int], frozenset[str]]] = {}


def normalize_remote(url: str) -> str:
    """Return a git remote without protocol, user, port, `.git`, and with a lower-case host.

    `git@Host:Team/app.git` and `https://host/Team/app` are the same project: `host/Team/app`.
    """
    url = url.strip()
    match = re.match(
        r"^[a-z][a-z0-9+.-]*://(?:[^/]*@)?([^/:@]+)(?::\d+)?/(.*)$", url, re.IGNORECASE
    ) or re.match(r"^(?:[^@/]+@)?([^/:@]+):(?!\\)(.*)$", url)
    if not match:
        return url.rstrip("/").removesuffix(".git").rstrip("/")
    host, path = match.groups()
    return f"{host.lower()}/{path.strip('/').removesuffix('.git')}".rstrip("/")


def remote_of(root: str) -> str | None:
    """Return the remote `origin` of the repository at `root`; "" if there is none.

    Return None if that is unknown: git is missing, fails, or takes too long.
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


def author_of(root: str) -> str:
    """Return the user's name in one line: git's `user.name` in `root`, else the login name."""
    name = setting_of(root, "user.name")
    if not name:
        try:
            name = getpass.getuser()
        except (KeyError, OSError):  # a container may run as a user without a name
            return ""
    return one_line(name, AUTHOR_CHARACTERS)


def setting_of(root: str, name: str) -> str:
    """Return a setting of git in `root`; "" if it is not set, or git does not answer."""
    return (git_output(root, "config", "--get", name) or b"").decode("utf-8", "replace").strip()


def is_tracked(root: str, path: str) -> bool:
    """Return whether git tracks a file of the repository at `root`.

    Run git once, and again whenever git's index has changed.
    """
    directory, name = os.path.split(path)
    return name in tracked_in(root, directory)


def tracked_in(root: str, directory: str) -> frozenset[str]:
    """Return the names of the files directly in `directory` that git tracks, as `is_tracked` does."""
    git_directory = git_directory_of(root)
    if git_directory is None:
        return frozenset()
    try:
        status = os.stat(os.path.join(git_directory, "index"))
    except OSError:  # nothing was ever added
        return frozenset()
    version = status.st_mtime_ns, status.st_size
    cached = _tracked.get((root, directory))
    if cached is None or cached[0] != version:
        # Ask for the whole directory at once: an import writes hundreds of days.
        below = os.path.relpath(os.path.realpath(directory), os.path.realpath(root))
        found = [os.path.split(one) for one in tracked_below(root, directory)]
        names = frozenset(last for first, last in found if os.path.normpath(first) == below)
        cached = _tracked[root, directory] = (version, names)
    return cached[1]


def tracked_below(root: str, path: str) -> list[str]:
    """Return the files that git tracks at or below `path`, in the repository at `root`."""
    output = git_output(root, "ls-files", "-z", "--", ":(literal)" + path) or b""
    return [os.fsdecode(name) for name in output.split(b"\0") if name]


def is_ignored(root: str, path: str) -> bool:
    """Return whether git ignores `path` in the repository at `root`, or there is no repository.

    False if git does not answer.
    """
    if git_directory_of(root) is None:
        return True
    return git_output(root, "check-ignore", "-q", "--no-index", path) is not None


def keep_out_of_git(root: str, *, is_wanted: bool, with_openclaw: bool = False) -> None:
    """Add `.memkit`, or its lock alone, to git's own list of excluded files. Raise `OSError`.

    Also add OpenClaw's folder of days if `with_openclaw`, unless git tracks files in it: who commits
    OpenClaw's days wants to see the next ones. A repository can bring ignore files, but not that list. Write
    nothing through a `.git` file that only claims to lead to another repository.
    """
    directory = own_git_directory(root)
    if directory is None:
        return
    path = inside(os.path.join(directory, "info", "exclude"), directory)
    try:
        text = read_regular(path, _EXCLUDE_BYTES).decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        text = ""
    before, blocks = text, [EXCLUDED if is_wanted else EXCLUDED_LOCK]
    if not is_wanted:
        text = text.replace(EXCLUDED, "").replace(EXCLUDED_DAYS, "")
    elif with_openclaw and not tracked_in(root, os.path.join(root, OPENCLAW_DAYS)):
        blocks.append(EXCLUDED_DAYS)
    for block in blocks:
        if block not in text:
            text += ("\n" if text and not text.endswith("\n") else "") + block
    if text == before:
        return
    make_private_directory(os.path.dirname(path))
    write_durably(path, text.encode("utf-8", "surrogateescape"), 0o644)


def run_git(root: str, *arguments: str, seconds: float | None = None) -> tuple[int, bytes] | None:
    """Run git in the repository at `root`; return its status and output, or None if it did not run.

    If git does not answer within `GIT_SECONDS`, it is not run there for a minute. `seconds` is another limit,
    without that pause.

    A repository's settings may name programs to run, and a session's environment may point git to
    another repository. Ignore both.
    """
    git = find_program("git")
    if git is None or time.monotonic() < _paused_until.get(root, 0.0):
        return None
    try:
        process = subprocess.Popen(
            _command(git, root, arguments),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_environment(),
            **no_window(),
        )
    except OSError:
        return None
    with process:
        atexit.register(process.kill)  # a thread may wait for git when the program ends
        try:
            output, _ = process.communicate(timeout=GIT_SECONDS if seconds is None else seconds)
        except subprocess.TimeoutExpired:  # git may wait on a pipe among its files
            process.kill()
            if seconds is None:
                _paused_until[root] = time.monotonic() + _PAUSE_SECONDS
            return None
        finally:
            atexit.unregister(process.kill)
    return process.returncode, output


def git_output(root: str, *arguments: str, seconds: float | None = None) -> bytes | None:
    """Return the output of git as `run_git` runs it; None if it failed, or did not run."""
    answer = run_git(root, *arguments, seconds=seconds)
    return None if answer is None or answer[0] else answer[1]


def _command(git: str, root: str, arguments: Sequence[str]) -> list[str]:
    settings = ["core.fsmonitor=false", "core.hooksPath=" + os.devnull, "protocol.allow=never"]
    settings.append("safe.directory=*")  # in a container another user may own the repository
    settings.append("log.showSignature=false")  # it would run `gpg.program`
    options = [part for setting in settings for part in ("-c", setting)]
    return [git, *options, "-C", root, *arguments]


def _environment() -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment.update(
        GIT_OPTIONAL_LOCKS="0", GIT_TERMINAL_PROMPT="0", GIT_NO_LAZY_FETCH="1", LC_ALL="C"
    )
    environment["GIT_ALLOW_PROTOCOL"] = ""  # wins over a repository's own `protocol.*.allow`
    return environment
