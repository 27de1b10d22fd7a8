"""Which projects the service watches: those it holds open. A change is indexed by the writer."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from memkit.hook.project import Project
from memkit.index.memory_files import memory_paths
from memkit.paths import Home
from memkit.service.watcher import Watcher
from memkit.service.writer import Writer
from memkit.settings.load import Settings

logger = logging.getLogger(__name__)


class Watching:
    """The watcher, bound to the writer."""

    def __init__(self, home: Home, writer: Writer) -> None:
        self._home = home
        self._writer = writer
        self._watcher = Watcher(self._changed)

    def watch(self, project: Project, settings: Settings) -> None:
        """Index the project whenever its memory changes."""
        paths = memory_paths(project, self._home, settings)
        absolute = [Path(project.root, path) for path in paths]
        self._watcher.watch(project.root, absolute, exclude=settings.memory.exclude)

    def unwatch(self, root: str) -> None:
        """Leave the project to its next search."""
        self._watcher.unwatch(root)

    def state(self) -> list[dict[str, Any]]:
        """The roots that are watched, and whether by polling."""
        return [
            {"root": root, "polling": self._watcher.is_polling(root)}
            for root in self._watcher.roots
        ]

    def close(self) -> None:
        """Watch nothing any more."""
        self._watcher.close()

    def _changed(self, root: str) -> None:
        self._writer.index(root)
