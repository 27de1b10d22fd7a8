"""Who asks, and where: answers know the worktree and the Claude Code session of the caller.

A command sends this to the service, which has imported all that is needed. A command that only asks has not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from memkit.paths import Home
from memkit.recall.results import Answer, SearchRequest

if TYPE_CHECKING:
    from memkit.recall.search import Searcher

SESSION_VARIABLE = "CLAUDE_CODE_SESSION_ID"
"""Names the session, for each command that Claude runs."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The working directory and the Claude Code session of whoever asks; "" if unknown."""

    directory: str = ""
    session: str = ""


def answer_for(
    caller: Caller, searcher: Searcher, request: SearchRequest, home: Home, root: str
) -> Answer:
    """Return the answer about the project at `root`, with marks from git.

    The file that the caller's session edited last counts as the one being edited.
    """
    from memkit.recall.git_marks import marked, worktree_of

    if caller.session and not request.file:
        from memkit.recall.edited_file import last_edited

        roots = [worktree_of(root, caller.directory), root]
        request = replace(request, file=last_edited(home, caller.session, roots))
    return marked(searcher.answer(request), caller.directory)


def sections_for(caller: Caller, sections: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the sections that `memkit expand` shows, with marks from git."""
    from memkit.recall.git_marks import marked_sections

    return marked_sections(sections, caller.directory)
