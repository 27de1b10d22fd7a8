"""The caller's working directory and session.

The command only sends them; the service, which has the imports loaded, reads git and the transcript.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from memkit.agents.claude_code.places import transcripts_directory
from memkit.agents.claude_code.transcript import Transcript
from memkit.agents.tools import role_of
from memkit.capture.sessions import Sessions
from memkit.errors import MemkitError
from memkit.paths import Home, is_plain_name
from memkit.projects.project import Project
from memkit.search.results import Answer, SearchRequest
from memkit.settings.load import Settings

if TYPE_CHECKING:
    from memkit.browse.expand import Section

logger = logging.getLogger(__name__)

TAIL_BYTES = 1024 * 1024
"""The last bytes of a transcript to look for an edit in."""

_PATHS = ("file_path", "notebook_path")


def last_edited(home: Home, session: str, roots: Sequence[str]) -> str:
    """Return the path, relative to one of `roots`, of the file that `session` edited last; "" if unknown.

    It comes from a transcript: use it only to compare names.
    """
    transcript = _transcript(home, session)
    if transcript is None:
        return ""
    try:
        start = max(0, transcript.stat().st_size - TAIL_BYTES)
        entries = list(Transcript(transcript, start))
    except (MemkitError, OSError) as error:  # the search ranks without it
        logger.info("no edited file: %s", error)
        return ""
    for entry in reversed(entries):
        for block in reversed(entry.blocks):
            if block.kind == "tool_use" and role_of(block.tool_name) == "edit":
                given = [block.tool_input.get(name) for name in _PATHS]
                path = next((one for one in given if isinstance(one, str)), "")
                if found := _inside(path, roots):
                    return found
    return ""


def _transcript(home: Home, session: str) -> Path | None:
    """Return the transcript of a session by its whole id, without reading the states of all sessions."""
    if not is_plain_name(session):
        return None
    sessions = Sessions(home)
    try:
        known = sessions.load(session).transcript if sessions.knows(session) else ""
    except MemkitError as error:
        logger.info("%s", error)
        known = ""
    paths = [Path(known)] if known else []
    # In the first turn of a session, memkit has no state of it yet.
    paths += sorted(transcripts_directory().glob(f"*/{session}.jsonl"))
    return next((path for path in paths if path.is_file()), None)


def _inside(path: str, roots: Sequence[str]) -> str:
    if not os.path.isabs(path) or "\0" in path:
        return ""
    real = os.path.realpath(path)
    for root in roots:
        if root and real.startswith(root.rstrip(os.sep) + os.sep):
            return os.path.relpath(real, root).replace(os.sep, "/")
    return ""


SESSION_VARIABLE = "CLAUDE_CODE_SESSION_ID"
"""Names the session, for each command that Claude runs."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The working directory and the Claude Code session of a client; "" if unknown."""

    directory: str = ""
    session: str = ""


def answer_for(
    caller: Caller, ask: Callable[[SearchRequest], Answer], request: SearchRequest, home: Home, root: str
) -> Answer:
    """Return the answer of `ask` about the project at `root`, with marks from git, and with who
    shared what.

    The file that the caller's session edited last counts as the one being edited.
    """
    from memkit.browse.git_marks import marked, worktree_of
    from memkit.search.shared_by import marked_team

    if caller.session and not request.file:
        roots = [worktree_of(root, caller.directory), root]
        request = replace(request, file=last_edited(home, caller.session, roots))
    return marked(marked_team(ask(request), home), caller.directory)


def expand_entries(
    project: Project, home: Home, settings_of: Callable[[Project], Settings], names: Iterable[str],
    directory: str, *, other_projects: bool = True,
) -> list[Section]:
    """Return the sections around entries, with marks from git.

    `directory` is the caller's. See `memkit.browse.expand.expand_known`.
    """
    from memkit.browse.expand import expand_known
    from memkit.browse.git_marks import marked_sections

    sections = [
        expand_known(project, home, settings_of, name, other_projects=other_projects) for name in names
    ]
    return marked_sections(sections, directory)
