"""Colleagues' entries in the answer to a question, from a server that several memory homes share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from memkit.paths import Home
from memkit.projects.project import Project
from memkit.recall.results import Filters, Result, SearchRequest
from memkit.settings import is_server
from memkit.settings.load import Settings

if TYPE_CHECKING:
    from memkit.index.colleagues import ColleagueRow, Colleagues

NEAR_RELEVANCE = 0.45
"""The least share of the best relevance of all. A colleague's entry below it is left out, as one's own is."""

_SESSION_CHARACTERS = 36
"""A whole session id. The server cannot find the start of one."""


class SharedMemory:
    """The rows of colleagues in one project, whose root directory here is `root`."""

    def __init__(self, colleagues: Colleagues, root: str) -> None:
        self._colleagues = colleagues
        self.root = root

    def nearest(self, vector: NDArray[np.float32], filters: Filters) -> list[ColleagueRow]:
        """Return the nearest rows, before the filters that a server cannot apply. Raise `IndexStoreError`."""
        from memkit.index.colleagues import Conditions

        conditions = Conditions(
            since=filters.since.toordinal() if filters.since else 0,
            until=filters.until.toordinal() if filters.until else 0,
            kind=filters.kind,
            branch=filters.branch,
            session=filters.session if len(filters.session) >= _SESSION_CHARACTERS else "",
        )
        return self._colleagues.nearest(vector, conditions)


def shared_memory(project: Project, home: Home, settings: Settings) -> SharedMemory | None:
    """Return the rows of colleagues in a project, or None if it shares none."""
    if not is_server(settings.index.uri) or settings.embedding.provider == "none":
        return None
    from memkit.index.colleagues import colleagues_of

    found = colleagues_of(project, home, settings)
    return None if found is None else SharedMemory(found, project.root)


def interleaved(
    own: Sequence[Result], theirs: Sequence[Result], best: float, request: SearchRequest, usual: int
) -> list[Result]:
    """Return two rankings as one: each keeps its order, and the more relevant of the next two comes first.

    Relevance compares across memories, scores do not. `best` is the relevance of the best match in the own
    memory, `usual` the number of results if the request names none.
    """
    best = max([best, *(one.relevance for one in theirs)])
    if request.minimum is None:
        theirs = [one for one in theirs if one.relevance >= NEAR_RELEVANCE * best]
    found: list[Result] = []
    left, right = [*reversed(own)], [*reversed(theirs)]
    while left or right:
        is_own = not right or (bool(left) and left[-1].relevance >= right[-1].relevance)
        found.append((left if is_own else right).pop())
    return found if request.budget else found[: request.k or usual]
