"""The caller's working directory and session.

The command only sends them; the service, which has the imports loaded, reads git and the transcript.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from memkit.paths import Home
from memkit.recall.results import Answer, SearchRequest

if TYPE_CHECKING:
    from memkit.recall.expand import Section

SESSION_VARIABLE = "CLAUDE_CODE_SESSION_ID"
"""Names the session, for each command that Claude runs."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The working directory and the Claude Code session of whoever asks; "" if unknown."""

    directory: str = ""
    session: str = ""


def answer_for(
    caller: Caller,
    ask: Callable[[SearchRequest], Answer],
    request: SearchRequest,
    home: Home,
    root: str,
) -> Answer:
    """Return the answer of `ask` about the project at `root`, with marks from git, and with who
    shared what.

    The file that the caller's session edited last counts as the one being edited.
    """
    from memkit.recall.git_marks import marked, worktree_of
    from memkit.recall.team import marked_team

    if caller.session and not request.file:
        from memkit.recall.edited_file import last_edited

        roots = [worktree_of(root, caller.directory), root]
        request = replace(request, file=last_edited(home, caller.session, roots))
    return marked(marked_team(ask(request), home), caller.directory)


def sections_for(caller: Caller, sections: list[Section], home: Home) -> list[Section]:
    """Return the sections that `memkit expand` shows, with marks from git, and who shared them."""
    from memkit.recall.git_marks import marked_sections
    from memkit.recall.team import marked_team_sections

    return marked_sections(marked_team_sections(sections, home), caller.directory)
