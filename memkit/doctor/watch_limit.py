"""Whether the kernel reports every change of a memory: file systems and limits that prevent it."""

from __future__ import annotations

import errno
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from memkit.doctor.finding import Finding, Subject

_SILENT = frozenset(
    "9p afs beegfs ceph cifs coda drvfs fakeowner fuse gfs2 gpfs lustre ncpfs nfs nfs4 ocfs2 orangefs "
    "prl_fs smb2 smb3 smbfs vboxsf virtiofs vmhgfs".split()
)
"""File systems that others write to, over a network or from a virtual machine's host (inotify(7))."""

MOUNTINFO = Path("/proc/self/mountinfo")

LIMITS = {
    errno.ENOSPC: "fs.inotify.max_user_watches",
    errno.EMFILE: "fs.inotify.max_user_instances",
}
"""The sysctl to raise, by the error that inotify reports."""

_IMPACT = "the service checks the memory every two seconds instead, which costs battery"


def check_watches(subject: Subject) -> Iterator[Finding]:
    """Check whether one more directory can be watched."""
    try:
        check_room()
    except OSError as error:
        limit = LIMITS.get(error.errno or 0)
        if limit:
            value = 524288 if "watches" in limit else 1024
            fix = f"`sudo sysctl {limit}={value}`"
            yield Finding("inotify-limit", "warning", describe_limit(error), _IMPACT, fix)


def check_file_system(subject: Subject) -> Iterator[Finding]:
    """Check whether the memory is on a file system that others change without an event here."""
    memory = os.path.realpath(subject.project.memory)
    kind = silent_file_system(memory)
    if kind is not None:
        what = f"{memory} is on {kind}, which does not report all changes"
        yield Finding("silent-file-system", "note", what, _IMPACT, "nothing; it still works")


def check_room() -> None:
    """Raise `OSError` if inotify cannot watch one more directory.

    watchdog skips, without an error, the subdirectories that it cannot add.
    """
    if sys.platform != "linux":
        return
    from watchdog.events import FileSystemEventHandler
    from watchdog.observers import Observer

    # The hidden name keeps the watcher from reporting it as a change.
    with tempfile.TemporaryDirectory(prefix=".memkit-") as directory:
        observer = Observer()
        observer.start()
        try:
            observer.schedule(FileSystemEventHandler(), directory)
        finally:
            observer.stop()
            observer.join()


def describe_limit(error: OSError) -> str:
    """Return a line on the inotify limit that caused `error`, "" if none did."""
    limit = LIMITS.get(error.errno or 0)
    return f"inotify accepts no more watches, {limit} is reached" if limit else ""


def silent_file_system(path: str, mountinfo: str | None = None) -> str | None:
    """Return the file system type of `path` if changes made elsewhere cause no event here, else None.

    `path` is absolute and without links; it need not exist. `mountinfo` is the mount table in the
    format of proc_pid_mountinfo(5), by default that of this process. Only Linux has one.
    """
    if mountinfo is None:
        if sys.platform != "linux":
            return None
        mountinfo = MOUNTINFO.read_text(encoding="utf-8", errors="surrogateescape")
    longest, kind = -1, ""
    for line in mountinfo.splitlines():
        mount, _, source = line.partition(" - ")
        fields = mount.split()
        if len(fields) < 5 or not source:
            continue
        point = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), fields[4])
        is_on_it = path == point or path.startswith(point.rstrip(os.sep) + os.sep)
        # Of two mounts on one directory, the later one hides the earlier.
        if is_on_it and len(point) >= longest:
            longest, kind = len(point), source.split()[0]
    return kind if kind in _SILENT or kind.startswith("fuse.") else None
