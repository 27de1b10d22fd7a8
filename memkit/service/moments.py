"""Answer the hooks that ask for a pointer at the moment of action.

Text of the session is redacted before it is looked up. Nothing of it is kept or logged.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import Any

from memkit.agents.claude_code.agents import starting_task
from memkit.agents.claude_code.omitted import asks_memory
from memkit.agents.claude_code.tools import SHELL
from memkit.conversation.turn import ToolCall, excerpt
from memkit.journal.tool_lines import read_call, tool_line
from memkit.paths import Home
from memkit.privacy.redact import redact
from memkit.projects.project import Project
from memkit.recall.failures import signature
from memkit.recall.moments import Moments
from memkit.recall.pointers import Pointer, find_pointers, written_by
from memkit.recall.search import Searcher
from memkit.settings.load import Settings
from memkit.text import encodable

MOST_EDITED = 10_000
"""Edited files to remember, of all sessions."""

TASK_CHARACTERS = 2000
"""Characters of a task to look up: the embedding model reads no more."""


class MomentPointers:
    """Finds the pointers for one event of a session."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._edited: OrderedDict[tuple[str, str], str] = OrderedDict()
        """The id of the pointer for each file that a session edited, or ""."""

    def after_failure(
        self,
        searcher: Searcher,
        project: Project,
        settings: Settings,
        asked: dict[str, Any],
        shown: Collection[str],
    ) -> list[Pointer]:
        """Return how an earlier turn got past the failed `command` with this `error`."""
        hide = partial(redact, patterns=settings.capture.compiled_patterns())
        command = encodable(str(asked["command"]))
        call = ToolCall(SHELL, {"command": excerpt(command)}, excerpt(encodable(str(asked["error"]))), True)
        if asks_memory(call.name, call.input):
            return []
        line = read_call(tool_line(call, (project.root, str(asked.get("directory", ""))), hide))
        moments = Moments(searcher.corpus, project, self._home)
        found = moments.past_failure(signature(line), line.given, str(asked["session"]), shown)
        return [found] if found else []

    def before_edit(
        self, searcher: Searcher, project: Project, asked: dict[str, Any], shown: Collection[str]
    ) -> list[Pointer]:
        """Return the newest decision about `file`, an absolute path, when a session first edits it."""
        file, session = encodable(str(asked["file"])), str(asked["session"])
        offered = self._edited.get((session, file))
        if offered is not None and (not offered or offered in shown):  # else it came too late
            return []
        # A linked worktree is outside the project; its paths are shown relative to the session's directory.
        places = (project.root, encodable(str(asked.get("directory", ""))))
        paths = {os.path.relpath(file, one) for one in places if one and file.startswith(one + os.sep)}
        if not paths:
            return []
        found = Moments(searcher.corpus, project, self._home).decision(paths, session, shown)
        self._edited[session, file] = found.id if found else ""
        while len(self._edited) > MOST_EDITED:
            self._edited.popitem(last=False)
        return [found] if found else []

    def of_agent(self, searcher: Searcher, settings: Settings, task: str) -> list[Pointer]:
        """Return pointers for the task of a sub-agent. It has seen nothing of the session's."""
        prompt = redact(task, settings.capture.compiled_patterns())[:TASK_CHARACTERS]
        return find_pointers(searcher, prompt, "", (), written_by(self._home))

    @staticmethod
    def task(asked: dict[str, Any]) -> str:
        """Return the task of the sub-agent that starts, "" if there is none."""
        return starting_task(Path(encodable(str(asked["transcript"]))))
