"""Who wrote a result that somebody shared: the folder's author and day, and the last commit of its file.

Anybody with access to the repository can write into any author's folder. So the commit names its own author,
and differs then.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

from memkit.hook.git import SHORT_HASH, own_git_directory
from memkit.hook.team import team_file
from memkit.index.chunk import LEADING_HEADINGS, Chunk
from memkit.projects.git import run_together
from memkit.recall.results import Answer, Result
from memkit.text import one_line

if TYPE_CHECKING:
    from memkit.recall.expand import Section

SECONDS = 0.03
"""The time that git has for all results. Without its answer they have no commit."""

_MOST_FILES = 50
_MOST_COMMITS = 200
_NAME_CHARACTERS = 60

Commits = dict[tuple[str, str], dict[str, str]]
"""By root and source: the hash (`commit`), the author (`by`), and the day (`committed`)."""


def shared_by(source: str) -> dict[str, Any]:
    """Return author and day of a source in the team's folder, with the line to show; {} for any other."""
    found = team_file(source)
    return {} if found is None else _with_line({"author": found.author, "date": found.date})


def marked_team(answer: Answer, seconds: float | None = None) -> Answer:
    """Return `answer` with the commits of what people shared, without copies of what it has otherwise."""
    places = [(one.root, one.chunk.source) for one in answer.results if one.team]
    if not places:
        return answer
    commits = find_commits(places, seconds)
    own = [_words(one.chunk) for one in answer.results if not one.team]
    results = [
        replace(one, team=_with_line({**one.team, **commits.get((one.root, one.chunk.source), {})}))
        if one.team
        else one
        for one in answer.results
        if not (one.team and _is_copy(one, own))
    ]
    return replace(answer, results=results)


def marked_team_sections(sections: Sequence[Section], seconds: float | None = None) -> list[Section]:
    """Return the sections that `memkit expand` shows, with `team` if somebody shared them."""
    places = [(one["root"], one["source"]) for one in sections if team_file(one["source"])]
    commits = find_commits(places, seconds) if places else {}
    return [
        {**one, "team": _with_line({**found, **commits.get((one["root"], one["source"]), {})})}
        if (found := shared_by(one["source"]))
        else one
        for one in sections
    ]


def find_commits(places: Iterable[tuple[str, str]], seconds: float | None = None) -> Commits:
    """Return the last commit of each file, by root and source; those that git names within `seconds`."""
    by_root: dict[str, list[str]] = {}
    for root, source in dict.fromkeys(places):
        if own_git_directory(root) is not None:
            by_root.setdefault(root, []).append(source)
    roots = list(by_root)
    commands = [(root, _question(by_root[root][:_MOST_FILES])) for root in roots]
    found: Commits = {}
    outputs = run_together(commands, SECONDS if seconds is None else seconds)
    for root, output in zip(roots, outputs, strict=True):
        commit: dict[str, str] = {}
        for part in os.fsdecode(output or b"").split("\0"):
            if part.startswith("\x01"):
                name, _, rest = part[1:].partition("\x02")
                author, _, day = rest.partition("\x02")
                commit = {"commit": name[:SHORT_HASH], "by": _plain(author), "committed": day[:10]}
            elif source := part.strip("\n"):
                found.setdefault((root, source), commit)
    return found


def _question(sources: Sequence[str]) -> list[str]:
    days = [found.date for found in map(team_file, sources) if found]
    first = date.fromisoformat(min(days)) - timedelta(days=2)  # no commit of a file is older than its day
    # No pager, no signatures, no programs for diffs: a repository's settings name those.
    return [
        "--literal-pathspecs", "--no-pager", "log", "-z", f"--since={first.isoformat()}T00:00:00",
        f"--max-count={_MOST_COMMITS}", "--name-only", "--no-renames", "--no-ext-diff", "--no-textconv",
        "--no-color", "--no-mailmap", "--format=tformat:%x01%H%x02%an%x02%as", "HEAD", "--", *sources,
    ]  # fmt: skip


def _with_line(known: dict[str, Any]) -> dict[str, Any]:
    line = f"shared by {known['author']} on {known['date']}"
    if known.get("commit"):
        line += f", commit {known['commit']} by {known['by']}"
    return {**known, "line": line}


def _plain(name: str) -> str:
    return one_line("".join(one if one.isprintable() else " " for one in name), _NAME_CHARACTERS)


def _is_copy(result: Result, own: Sequence[str]) -> bool:
    words = _words(result.chunk)
    return bool(words) and any(words in one for one in own)


def _words(chunk: Chunk) -> str:
    """Return the letters and digits below the headings of a chunk, or those of its heading without times."""
    text = LEADING_HEADINGS.sub("", chunk.content).strip() or chunk.heading.lstrip("0123456789:- ")
    return "".join(filter(str.isalnum, text))
