"""Whether the kernel tells of edits."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator

from memkit.doctor.finding import Finding, Subject
from memkit.index.directories import LIMITS, Directories
from memkit.index.mounts import silent_file_system

_LATER = "the service looks at the memory every two seconds instead, which costs battery"


def check_watches(subject: Subject) -> Iterator[Finding]:
    """Whether one more directory can be watched."""
    directories = Directories(lambda event: None)
    try:
        with tempfile.TemporaryDirectory(prefix="memkit-") as directory:
            directories.add(directory, recursive=False)
    except OSError as error:
        limit = LIMITS.get(error.errno or 0)
        if limit:
            what = f"inotify takes no more, {limit} is reached"
            fix = (
                f"`sudo sysctl {limit}=524288`"
                if "watches" in limit
                else f"`sudo sysctl {limit}=1024`"
            )
            yield Finding("inotify-limit", "warning", what, _LATER, fix)
    finally:
        directories.close()


def check_file_system(subject: Subject) -> Iterator[Finding]:
    """Whether the memory is on a file system that others change unseen."""
    memory = os.path.realpath(subject.project.memory)
    kind = silent_file_system(memory)
    if kind is not None:
        what = f"{memory} is on {kind}, which does not tell of all changes"
        yield Finding("silent-file-system", "note", what, _LATER, "nothing; it works all the same")
