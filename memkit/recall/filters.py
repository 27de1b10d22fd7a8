"""Which chunks a search may return."""

from __future__ import annotations

from fnmatch import fnmatchcase

import numpy as np
from numpy.typing import NDArray

from memkit.recall.answers import Filters
from memkit.recall.corpus import Corpus


def mask(filters: Filters, corpus: Corpus) -> NDArray[np.bool_]:
    """Which chunks of `corpus` pass the filters."""
    allowed = np.ones(len(corpus), bool)
    days = corpus.columns["day"]
    if filters.since:
        allowed &= days >= filters.since.toordinal()
    if filters.until:
        allowed &= (days <= filters.until.toordinal()) & (days > 0)
    if filters.session:
        allowed &= corpus.where("session", lambda name: name.startswith(filters.session))
    if filters.branch:
        allowed &= corpus.where("branch", lambda name: name == filters.branch)
    if filters.kind:
        allowed &= corpus.where("kind", lambda name: name == filters.kind)
    if filters.path:
        path = filters.path.removeprefix("./").rstrip("/")
        allowed &= corpus.where("source", lambda name: is_at(name, path))
    return allowed


def is_at(source: str, path: str) -> bool:
    """Whether the file `source` is `path`, lies in that directory, or fits that pattern."""
    return source == path or source.startswith(f"{path}/") or fnmatchcase(source, path)
