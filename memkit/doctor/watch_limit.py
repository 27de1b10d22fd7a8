"""Whether the kernel reports edits."""

from __future__ import annotations

import os
from collections.abc import Iterator

from memkit.doctor.finding import Finding, Subject
from memkit.index.watchable import LIMITS, check_room, describe_limit, silent_file_system

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
