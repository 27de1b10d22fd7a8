"""Which file systems tell the kernel of this machine about every change."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

_SILENT = frozenset(
    "9p afs beegfs ceph cifs coda drvfs fakeowner fuse gfs2 gpfs lustre ncpfs nfs nfs4 ocfs2 orangefs "
    "prl_fs smb2 smb3 smbfs vboxsf virtiofs vmhgfs".split()
)
"""File systems that others write to, over a network or from a virtual machine's host (inotify(7))."""

MOUNTINFO = Path("/proc/self/mountinfo")


def silent_file_system(path: str, mountinfo: str | None = None) -> str | None:
    """The type of the file system of `path` if changes made elsewhere cause no event here, else None.

    `path` is absolute and without links; it need not exist. `mountinfo` is the mount table in the
    format of proc_pid_mountinfo(5), by default that of this process; only Linux has one.
    """
    if mountinfo is None:
        if sys.platform != "linux":
            return None
        mountinfo = MOUNTINFO.read_text(encoding="utf-8", errors="surrogateescape")
    kind = _file_system(path, mountinfo)
    return kind if kind in _SILENT or kind.startswith("fuse.") else None


def _file_system(path: str, mountinfo: str) -> str:
    longest, found = -1, ""
    for line in mountinfo.splitlines():
        mount, _, source = line.partition(" - ")
        fields = mount.split()
        if len(fields) < 5 or not source:
            continue
        point = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), fields[4])
        # Of two mounts on one place the later one hides the earlier.
        if _is_within(path, point) and len(point) >= longest:
            longest, found = len(point), source.split()[0]
    return found


def _is_within(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip(os.sep) + os.sep)
