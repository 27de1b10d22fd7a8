"""Running another program for as long as it shows signs of life.

A sign of life is a change in the size of the files below the directory the program works in: a
download grows it. Time limits inside the programs do not suffice: name resolution and retries
go around them.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from memkit.processes import detached, kill_group

_POLL_SECONDS = 0.05
_OUTPUT_TAIL_BYTES = 4096


def run_watched(
    command: Sequence[str],
    directory: Path,
    silence_seconds: float,
    environment: Mapping[str, str],
) -> None:
    """Run `command` in `directory`; end it after `silence_seconds` without a sign of life.

    `directory` must be private to memkit: Python programs import modules from where they start.
    `environment` is added to this process's own. Nothing of the program is left running, however
    this returns. Raises `subprocess.TimeoutExpired` after the silence,
    `subprocess.CalledProcessError` with the end of the output if the program fails, and `OSError`
    if it cannot be started.
    """
    with tempfile.TemporaryFile(dir=directory) as output:
        process = subprocess.Popen(
            command,
            cwd=directory,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            **detached(),
        )
        try:
            _wait(process, directory, silence_seconds)
        finally:
            if process.poll() is None:
                kill_group(process)
        if process.returncode:
            output.seek(max(0, output.seek(0, os.SEEK_END) - _OUTPUT_TAIL_BYTES))
            tail = output.read().decode("utf-8", "replace").strip()
            raise subprocess.CalledProcessError(process.returncode, command, tail)


def _wait(process: subprocess.Popen[bytes], directory: Path, silence_seconds: float) -> None:
    size = _size(directory)
    deadline = time.monotonic() + silence_seconds
    while True:
        try:
            process.wait(_POLL_SECONDS)
            return
        except subprocess.TimeoutExpired:
            now = _size(directory)
            if now != size:
                size, deadline = now, time.monotonic() + silence_seconds
            elif time.monotonic() >= deadline:
                raise


def _size(directory: Path) -> int:
    total = 0
    for parent, _, names in os.walk(directory):
        for name in names:
            try:
                total += Path(parent, name).lstat().st_size
            except FileNotFoundError:  # renamed or removed while we looked
                pass
    return total
