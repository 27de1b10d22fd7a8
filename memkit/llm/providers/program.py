"""A program that is run for its output: with an end in time, in a process group of its own."""

from __future__ import annotations

import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO

from memkit.processes import detached, kill_group

MAX_OUTPUT_BYTES = 4_000_000
"""What is read of either stream; a program that writes more is killed."""

_READ_BYTES = 65_536
_LEFT_SECONDS = 1.0


class TooSlowError(Exception):
    """The program did not end in time; it and all it started are killed."""


class TooMuchOutputError(Exception):
    """The program wrote more than `MAX_OUTPUT_BYTES`; it and all it started are killed."""


@dataclass(frozen=True)
class Ended:
    """What a program left: its exit status, and its output as text."""

    status: int
    output: str
    errors: str


def run(
    command: Sequence[str],
    *,
    environ: Mapping[str, str],
    directory: str,
    timeout: float,
    given: str = "",
) -> Ended:
    """Run `command` in `directory`, with `given` on its stdin, for at most `timeout` seconds.

    Raises `TooSlowError` and `TooMuchOutputError`, and `OSError` or `ValueError` if it cannot be
    started. Whatever happens, none of its process group is left.
    """
    with (
        tempfile.TemporaryFile() as stdin
    ):  # a file, which unlike a pipe never has to be waited for
        stdin.write(given.encode("utf-8", "replace"))
        stdin.seek(0)
        process = subprocess.Popen(
            command,
            cwd=directory,
            env=dict(environ),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            **detached(),
        )
    assert process.stdout is not None and process.stderr is not None
    output, errors = _Reader(process, process.stdout), _Reader(process, process.stderr)
    try:
        status = process.wait(timeout)
    except subprocess.TimeoutExpired:
        raise TooSlowError from None
    finally:
        kill_group(process)
        output.end()
        errors.end()
    if output.is_too_long or errors.is_too_long:
        raise TooMuchOutputError
    return Ended(status, output.text, errors.text)


class _Reader:
    """Reads a stream of a process in a thread, and kills a process that writes too much."""

    def __init__(self, process: subprocess.Popen[bytes], stream: IO[bytes]) -> None:
        self._process = process
        self._stream = stream
        self._data = bytearray()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    @property
    def is_too_long(self) -> bool:
        return len(self._data) > MAX_OUTPUT_BYTES

    @property
    def text(self) -> str:
        return self._data.decode("utf-8", "replace")

    def end(self) -> None:
        """Take what is still in the pipe, once the process is gone."""
        # What left the process group holds the pipe open; it is not waited for, nor the pipe closed.
        self._thread.join(_LEFT_SECONDS)
        if not self._thread.is_alive():
            self._stream.close()

    def _read(self) -> None:
        while not self.is_too_long and (data := self._stream.read(_READ_BYTES)):
            self._data += data
        if self.is_too_long:
            self._process.kill()
