"""Which chunks a search may return."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase

import numpy as np
from numpy.typing import NDArray

from memkit.recall.corpus import Corpus


@dataclass(frozen=True, slots=True)
class Filters:
    """What is asked of a result; an empty field asks nothing.

    `since` and `until` are days, both included: a chunk without a date passes neither. `session`
    is an id or its beginning, `path` a file or directory as in `source`, or a pattern of them
    (`docs/*.md`).
    """

    since: date | None = None
    until: date | None = None
    session: str = ""
    branch: str = ""
    kind: str = ""
    path: str = ""

    def mask(self, corpus: Corpus) -> NDArray[np.bool_]:
        """Which chunks of `corpus` pass."""
        allowed = np.ones(len(corpus), bool)
        days = corpus.columns["day"]
        if self.since:
            allowed &= days >= self.since.toordinal()
        if self.until:
            allowed &= (days <= self.until.toordinal()) & (days > 0)
        if self.session:
            allowed &= corpus.where("session", lambda name: name.startswith(self.session))
        if self.branch:
            allowed &= corpus.where("branch", lambda name: name == self.branch)
        if self.kind:
            allowed &= corpus.where("kind", lambda name: name == self.kind)
        if self.path:
            path = self.path.removeprefix("./").rstrip("/")
            allowed &= corpus.where("source", lambda name: is_at(name, path))
        return allowed


def is_at(source: str, path: str) -> bool:
    """Whether the file `source` is `path`, lies in that directory, or fits that pattern."""
    return source == path or source.startswith(f"{path}/") or fnmatchcase(source, path)
