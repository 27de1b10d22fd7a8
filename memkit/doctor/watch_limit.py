"""Whether the kernel reports edits."""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Iterator

from memkit.doctor.finding import Finding, Subject

_LIMITS = {
    errno.ENOSPC: ("fs.inotify.max_user_watches", 524288),
    errno.EMFILE: ("fs.inotify.max_user_instances", 1024),
}
"""The sysctl to raise, and to which value, by the error that inotify reports."""


def check_watches(subject: Subject) -> Iterator[Finding]:
    """Check whether one more directory can be watched."""
    from watchdog.events import FileSystemEventHandler
    from watchdog.observers import Observer

    try:
        observer = Observer()
        observer.start()
        try:
            with tempfile.TemporaryDirectory() as directory:
                observer.schedule(FileSystemEventHandler(), directory)
        finally:
            observer.stop()
            observer.join()
    except OSError as error:
        limit, value = _LIMITS.get(error.errno or 0, ("", 0))
        if limit:
            what = f"inotify accepts no more watches, {limit} is reached"
            impact = "an edit of the memory is found up to 10 seconds later"
            yield Finding("inotify-limit", "warning", what, impact, f"`sudo sysctl {limit}={value}`")
