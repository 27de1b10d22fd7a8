"""The command `memkit` for terminals: a script in `~/.local/bin` that runs the plugin's `bin/memkit`.

Claude Code puts the plugin on the PATH of its own sessions only. A terminal that runs the plugin's copy needs
no second environment.

Standard library only, Python 3.9 syntax, like the rest of this package.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from memkit.files import read_head, write_durably

MARK = "# made by `memkit setup`; `memkit uninstall` removes it"


def launcher_path() -> Path:
    """The path of the launcher, whether it exists or not."""
    return Path(os.path.expanduser("~"), ".local", "bin", "memkit")


def installed_launcher() -> list[Path]:
    """Return the path of the launcher if it exists and memkit wrote it, else an empty list."""
    path = launcher_path()
    try:
        content = read_head(str(path), 10_000)
    except OSError:
        return []
    return [path] if MARK.encode() in content else []


def launcher_text(repository_root: str, version: str) -> str:
    """Return the script that runs the memkit in `repository_root`.

    Claude Code installs each version of a plugin in a directory named by it. A launcher for such a directory
    runs the newest version there.
    """
    if os.path.basename(repository_root) == version:
        parent = shlex.quote(os.path.dirname(repository_root))
        program = f'"$(ls -td {parent}/*/bin/memkit | head -n 1)"'
    else:
        program = shlex.quote(os.path.join(repository_root, "bin", "memkit"))
    return f'#!/bin/sh\nexec {program} "$@" {MARK}\n'


def write_launcher(text: str) -> None:
    """Write the launcher, replacing an earlier one. Raise `OSError`."""
    path = launcher_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    write_durably(str(path), text.encode(), mode=0o755)
