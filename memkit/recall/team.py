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
from memkit.projects.team_files import read_copied, team_file
from memkit.recall.results import Answer, Result

if TYPE_CHECKING:
    from memkit.recall.expand import Section

def shared_by(source: str) -> dict[str, Any]:
    """Return author and day of a source in the team's folder, with the line to show; {} for any other."""
    found = team_file(source)
    return {} if found is None else _with_line(found._asdict(), found.author)


def marked_team(answer: Answer, home: Home) -> Answer:
    """Return `answer` with the commits of what people shared, without copies of what it has otherwise."""
    own = [_words(one.chunk) for one in answer.results if not one.team]
    results = [
        replace(one, team=_known(home, one.root, one.chunk.source)) if one.team else one
        for one in answer.results
        if not (one.team and _is_copy(one, own))
    ]
    return replace(answer, results=results)


def marked_team_sections(sections: Sequence[Section], home: Home) -> list[Section]:
    """Return the sections that `memkit expand` shows, with `team` if somebody shared them."""
    return [
        {**one, "team": _known(home, one["root"], one["source"])} if team_file(one["source"]) else one
        for one in sections
    ]


def _known(home: Home, root: str, source: str) -> dict[str, Any]:
    """Return what `shared_by` does, and the commit."""
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
