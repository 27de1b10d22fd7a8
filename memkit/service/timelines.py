"""The timelines that stay in memory, so that a request reads only the days that have changed."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict

from memkit.hook.project import Project
from memkit.paths import Home
from memkit.timeline.cache import MonthCache
from memkit.timeline.tree import Timeline

logger = logging.getLogger(__name__)

MAX_TIMELINES = 3
"""The number of projects whose timeline stays in memory. 3,000 days take about 20 MB."""


class Timelines:
    """Opens timelines. Several threads may call it at once."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._open: OrderedDict[str, tuple[MonthCache, threading.Lock]] = OrderedDict()
        self._guard = threading.Lock()

    def of(self, project: Project) -> Timeline:
        """Return the timeline of a project, as its day files are now."""
        with self._guard:
            made = MonthCache(project, self._home, logger.warning), threading.Lock()
            cache, lock = self._open.setdefault(project.root, made)
            self._open.move_to_end(project.root)
            while len(self._open) > MAX_TIMELINES:
                self._open.popitem(last=False)
        with lock:
            return Timeline(project, cache.months())
