"""What an import under way has done, so that one that was killed goes on where it was.

`MEMKIT_HOME/run/import.jsonl`: a line that says what is imported, and a line for each transcript taken in.
Losing it loses nothing: importing a transcript twice is the same as once.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from memkit.claude_code.files import Source
from memkit.files import PRIVATE_FILE, make_private_directory
from memkit.paths import Home


class ImportRecord:
    """The record of the import that `purpose` describes; a record of another import is replaced.

    The caller holds the index lock, so there is one at a time.
    """

    def __init__(self, home: Home, purpose: str) -> None:
        self.path = Path(home.run, "import.jsonl")
        self._done = _read(self.path, purpose)
        if not self._done:
            make_private_directory(str(self.path.parent))
            self.path.unlink(missing_ok=True)
            self._append(purpose)

    def has(self, source: Source) -> bool:
        """Whether the transcript was taken in, and has not changed since."""
        return _line(source) in self._done

    def add(self, source: Source) -> None:
        """Note that the transcript was taken in. Raises `OSError`."""
        self._done.add(_line(source))
        self._append(_line(source))

    def finish(self) -> None:
        """Forget the import: it is complete."""
        self.path.unlink(missing_ok=True)

    def _append(self, line: str) -> None:
        # Not synced: after a power cut the last transcripts are read again.
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE_FILE)
        with os.fdopen(descriptor, "ab") as file:
            file.write(line.encode("ascii") + b"\n")


def _line(source: Source) -> str:
    return json.dumps([os.fspath(source.path), source.size, source.modified])


def _read(path: Path, purpose: str) -> set[str]:
    """The lines of an unfinished import for `purpose`; empty if there is none."""
    try:
        lines = path.read_bytes().decode("ascii", "replace").split("\n")
    except FileNotFoundError:
        return set()
    # The last line may be half-written.
    return set(lines[1:-1]) if lines[0] == purpose else set()
