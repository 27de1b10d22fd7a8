"""The patches by which models of OpenAI edit files, in the calls of several agents."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

PATCH = "apply_patch"
"""The tool that takes one."""

MOST_FILES = 500
"""The most files of a patch that become calls of their own."""

_FILE = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+)$", re.MULTILINE)


def patch_of(given: dict[str, Any]) -> str:
    """Return the patch in the input of a call: its first text, or ""."""
    return next((value for value in given.values() if isinstance(value, str)), "")


def edits_of(patch: str, directory: str) -> Iterator[dict[str, Any]]:
    """Yield the input of a call for each file of a patch: `file_path`, absolute if `directory` is known."""
    starts = list(_FILE.finditer(patch))[:MOST_FILES]
    for one, following in zip(starts, [*starts[1:], None], strict=False):
        path = one[1].strip()
        is_absolute = path.startswith(("/", "~")) or path[1:3] == ":\\"
        yield {
            "file_path": path if is_absolute or not directory else f"{directory}/{path}",
            "patch": patch[one.start() : following.start() if following else len(patch)].rstrip("\n"),
        }
