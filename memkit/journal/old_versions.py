"""Old versions of memory files that a compaction replaced, kept next to the archive."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from pathlib import Path

from memkit.errors import ArchiveError
from memkit.files import make_private_directory, write_durably
from memkit.hook.project import Project
from memkit.paths import Home

_UNTIL = re.compile(r"-until-\d{4}-\d\d-\d\d-[0-9a-f]{8}$")
_UNSAFE = re.compile(r"[^\w.-]+")


def keep_replaced(home: Home, project: Project, name: str, text: str, day: str) -> Path | None:
    """Keep `text`, the redacted content of file `name` until `day`. Return its path, or None for empty
    text.

    Keeps the same text of the same day once. Durable on return. Raise `ArchiveError`.
    """
    if not text.strip():
        return None
    data = text.encode("utf-8", "surrogateescape")
    directory = _directory(home, project.root)
    own = name.removesuffix(".md")
    path = directory / f"{own}-until-{day}-{hashlib.sha256(data).hexdigest()[:8]}.md"
    try:
        make_private_directory(str(directory))
        write_durably(str(path), data)
    except OSError as error:
        raise ArchiveError(f"cannot keep the old text as {path}: {error.strerror}") from error
    return path


def replaced_files(home: Home, roots: Collection[str] | None) -> list[Path]:
    """Return the old versions kept for the projects at `roots`, or for all projects if None."""
    above = [Path(home.replaced)] if roots is None else [_directory(home, root) for root in roots]
    return sorted(path for directory in above for path in directory.rglob("*.md"))


def original_name(path: Path) -> str:
    """Return the name of the file whose old version is at `path`."""
    return _UNTIL.sub("", path.stem) + ".md"


def _directory(home: Home, root: str) -> Path:
    owner = hashlib.sha256(root.encode("utf-8", "surrogateescape")).hexdigest()[:8]
    return Path(home.replaced, f"{_UNSAFE.sub('-', Path(root).name)[:40]}-{owner}")
