"""What stood in a memory file before memkit changed it on a model's word: kept beside the archive."""

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
    """Keep `text`, which stood in the file `name` until `day` and is redacted; None if there is none.

    The same text of the same day is kept once. Durable when it returns. Raises `ArchiveError`.
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
    """What is kept of the projects at `roots`, of all if None."""
    above = [Path(home.replaced)] if roots is None else [_directory(home, root) for root in roots]
    return sorted(path for directory in above for path in directory.rglob("*.md"))


def original_name(path: Path) -> str:
    """The name of the file whose text is kept at `path`."""
    return _UNTIL.sub("", path.stem) + ".md"


def _directory(home: Home, root: str) -> Path:
    owner = hashlib.sha256(root.encode("utf-8", "surrogateescape")).hexdigest()[:8]
    return Path(home.replaced, f"{_UNSAFE.sub('-', Path(root).name)[:40]}-{owner}")
