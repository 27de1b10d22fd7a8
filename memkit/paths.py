"""Where memkit keeps things, and how it writes them.

Standard library only, Python 3.9 syntax: the hooks import this module.
"""

from __future__ import annotations

import contextlib
import io
import os
import stat
import time
from collections.abc import Callable, Iterator

PRIVATE_FILE = 0o600
PRIVATE_DIRECTORY = 0o700

MEMORY_DIRECTORY = os.path.join(".memkit", "memory")
"""The memory of a project, relative to its root."""

OFF_MARKER = os.path.join(".memkit", "off")
"""A project with this file is not remembered; `memkit off` writes it, with the time."""

OFF_TIMES = os.path.join(".memkit", "off-times")
"""From when to when a project was not remembered: two numbers a line, in seconds since the epoch."""


READERS_BLOCK = os.name == "nt"
"""Whether a file cannot be replaced while anybody has it open, if only a virus scanner."""

BUSY_SECONDS = 2.0
"""How long it is tried then."""


# Windows keeps the names of devices, with any suffix, for itself.
_PLAIN_NAME = r"(?!(?i:con|prn|aux|nul|com[0-9]|lpt[0-9])$)[A-Za-z0-9][A-Za-z0-9_-]{0,79}"


_TEMPORARY_NAME = r"\.[a-z0-9_]{8}\.tmp"
"""What `write_durably` calls a file until it is complete; `tempfile` picks the eight characters."""


class Home:
    """The places under one memory home (`MEMKIT_HOME`, by default `~/.memkit`). Nothing is created here."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.config_file = os.path.join(root, "config.toml")
        self.spool = os.path.join(root, "spool")
        self.archive = os.path.join(root, "archive")
        self.replaced = os.path.join(self.archive, "replaced")
        self.before_restore = os.path.join(self.archive, "before-restore")
        self.sessions = os.path.join(root, "sessions")
        self.summaries = os.path.join(root, "summaries")
        self.forgotten = os.path.join(root, "forgotten.json")
        self.ledger = os.path.join(root, "ledger.jsonl")
        self.owner = os.path.join(root, "owner")
        self.projects = os.path.join(root, "projects")
        self.memory = os.path.join(root, "memory")
        self.index = os.path.join(root, "index")
        self.models = os.path.join(root, "models")
        self.environments = os.path.join(root, "env")
        self.run = os.path.join(root, "run")
        self.live = os.path.join(self.run, "live")
        self.index_lock = os.path.join(self.run, "index.lock")
        self.index_holder = os.path.join(self.run, "index.holder")
        self.service_socket = os.path.join(self.run, "service.sock")
        self.service_process = os.path.join(self.run, "service.pid")
        self.service_lock = os.path.join(self.run, "service.lock")
        self.service_token = os.path.join(self.run, "service.json")
        self.service_problem = os.path.join(self.run, "service.problem")
        self.left = os.path.join(self.run, "left.json")
        self.checked = os.path.join(self.run, "checked")
        self.hook_settings = os.path.join(self.run, "hooks.json")
        self.nowhere = os.path.join(self.run, "nowhere")
        self.log = os.path.join(root, "log")
        self.events_file = os.path.join(self.log, "events.jsonl")
        self.hook_log = os.path.join(self.log, "hooks.log")
        self.worker_log = os.path.join(self.log, "worker.log")
        self.log_file = os.path.join(self.log, "memkit.log")

    def __repr__(self) -> str:
        return f"Home({self.root!r})"

    @classmethod
    def from_environment(cls) -> Home:
        """The home named by `MEMKIT_HOME`, else `~/.memkit`."""
        root = os.environ.get("MEMKIT_HOME") or os.path.join("~", ".memkit")
        return cls(os.path.abspath(os.path.expanduser(root)))


def file_version(path: str) -> list[int] | None:
    """What changes when a file is written: its time, size and inode; None if there is none.

    Raises `OSError`.
    """
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return [found.st_mtime_ns, found.st_size, found.st_ino]


def make_private_directory(path: str) -> str:
    """Create `path` and what is missing above it, new directories with mode 0700; return `path`."""
    if not os.path.isdir(path):
        parent = os.path.dirname(path)
        if parent and parent != path:
            make_private_directory(parent)
        try:
            os.mkdir(path, PRIVATE_DIRECTORY)
        except FileExistsError:
            if not os.path.isdir(path):
                raise
    return path


def is_plain_name(name: str) -> bool:
    """Whether a name from outside is safe as that of a file, with any suffix, on every platform."""
    import re  # which the launcher does without

    return bool(re.fullmatch(_PLAIN_NAME, name))


def create_private(path: str) -> io.BufferedWriter:
    """Open a new or emptied file for writing that only its owner may read; not forced to the disk."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE_FILE), "wb")


@contextlib.contextmanager
def replacing_privately(path: str) -> Iterator[io.BufferedWriter]:
    """A file, which only its owner may read, that has taken the place of `path` when the block has ended.

    For what is too long for `write_durably`. It is on the disk then. If the block fails, what was there is
    still there. Raises `OSError`.
    """
    directory, name = os.path.split(os.path.abspath(path))
    partial = os.path.join(directory, f".{name}.partial")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(partial)  # by one that was killed
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        with os.fdopen(os.open(partial, flags, PRIVATE_FILE), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        put_in_place(partial, path)
    except BaseException as error:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(partial)
        if isinstance(error, OSError) and error.filename is None:
            error.filename = path
        raise
    sync_directory(directory)


def put_in_place(made: str, path: str) -> None:
    """Rename the file `made` to `path`, in place of what is there. Raises `OSError`."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            os.replace(made, path)
            return
        except PermissionError:
            if not READERS_BLOCK or time.monotonic() > deadline:
                raise
        time.sleep(0.01)


def stale_temporary_files(directory: str, before: float) -> list[str]:
    """Return the files that killed writers left in `directory`, last changed before that time.

    Only files named as `write_durably` names them; `before` is in seconds since the epoch.
    """
    import re  # which the launcher does without

    found = []
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                if not re.fullmatch(_TEMPORARY_NAME, entry.name):
                    continue
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(status.st_mode) and status.st_mtime < before:
                    found.append(entry.path)
    except FileNotFoundError:
        return []
    return found


def sync_directory(path: str) -> None:
    """Make renames inside `path` survive a power cut, where the platform can."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:  # Windows cannot open a directory; its renames are journalled
        return
    try:
        os.fsync(descriptor)
    except OSError:  # some network file systems refuse; the file itself is already synced
        pass
    finally:
        os.close(descriptor)


def write_durably(
    path: str,
    data: bytes,
    mode: int = PRIVATE_FILE,
    check: Callable[[], None] | None = None,
) -> None:
    """Replace the file at `path` by `data`, atomically and on disk before this returns.

    A reader sees the old file or the new one, never a part. `check` is called right before the rename
    and may raise to stop it. Raises `OSError`; then the old file is still there and no temporary file
    is left.
    """
    import tempfile  # 8 ms that hooks and the start of a command do without

    directory = os.path.dirname(path)
    descriptor, temporary = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=directory)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode)
        if check is not None:
            check()
        put_in_place(temporary, path)
    except BaseException as error:
        try:
            os.unlink(temporary)
        except FileNotFoundError:
            pass
        if isinstance(error, OSError) and error.filename is None:
            error.filename = path  # a full disk does not say where it is
        raise
    sync_directory(directory)
