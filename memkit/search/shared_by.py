"""Who wrote a result that somebody shared: the folder's author and day, and the last commit of its file.

Anybody with access to the repository can write into any author's folder. So the commit names its own author,
and differs then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from memkit.index.chunk import LEADING_HEADINGS, Chunk
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.projects.team_files import read_copied, team_file
from memkit.search.results import Answer, Filters, Result, SearchRequest
from memkit.settings import is_server
from memkit.settings.load import Settings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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


def shared_by(source: str) -> dict[str, Any]:
    """Return author and day of a source in the team's folder, with the line to show; {} for any other."""
    found = team_file(source)
    return {} if found is None else _with_line(found._asdict(), found.author)


def marked_team(answer: Answer, home: Home) -> Answer:
    """Return `answer` with the commits of what people shared, without copies of what it has otherwise."""
    own = [_words(one.chunk) for one in answer.results if not one.team]
    results = [
        replace(one, team=team_mark(home, one.root, one.chunk.source)) if one.team else one
        for one in answer.results
        if not (one.team and _is_copy(one, own))
    ]
    return replace(answer, results=results)


def team_mark(home: Home, root: str, source: str) -> dict[str, Any]:
    """Return author and day of a source in the team's folder, with its last commit and the line to show."""
    copied = read_copied(home, root)
    commit = {k: v for k, v in copied.get("files", {}).get(source, {}).items() if k != "blob"}
    found = shared_by(source)
    is_own = [found["author"], commit.get("by", "")] == copied.get("own")
    return _with_line({**found, **commit}, "you" if is_own else found["author"])


def _with_line(known: dict[str, Any], author: str) -> dict[str, Any]:
    line = f"shared by {author} on {known['date']}"
    if known.get("commit"):
        line += f", commit {known['commit']} by {known['by']}"
    return {**known, "line": line}


def _is_copy(result: Result, own: Sequence[str]) -> bool:
    words = _words(result.chunk)
    return bool(words) and any(words in one for one in own)


def _words(chunk: Chunk) -> str:
    text = LEADING_HEADINGS.sub("", chunk.content).strip() or chunk.heading.lstrip("0123456789:- ")
    return "".join(filter(str.isalnum, text))
