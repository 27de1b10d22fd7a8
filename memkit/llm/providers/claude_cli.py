"""The user's own Claude Code as a way to a model: `claude -p`, which needs no key beside its log-in.

It is run so that nothing comes of it but the answer: no tools, no hooks, no plugins, no memory files,
no session on disk. Its hooks would do nothing anyway: `MEMKIT_CHILD` says that memkit itself asks.
"""

from __future__ import annotations

import functools
import json
import os
import re
from collections.abc import Mapping

from memkit.files import make_private_directory
from memkit.hook.events import CHILD_VARIABLE
from memkit.ipc.launch import outside_session
from memkit.llm.model import NotConfiguredError, Reply, Task, UnusableReplyError
from memkit.llm.providers import program as child
from memkit.llm.providers.claude_result import read_result
from memkit.llm.providers.failures import too_slow
from memkit.llm.providers.text import excerpt, sendable
from memkit.paths import Home
from memkit.processes import find_program
from memkit.settings import SummarizeSettings

NAME = "claude-cli"

USUAL_MODEL = "haiku"

_USUAL_PLACES = ("~/.claude/local/claude", "~/.local/bin/claude")
_PLACES_FOR_ALL = ("/usr/local/bin/claude", "/opt/homebrew/bin/claude")

_NEEDED = ("--output-format", "--tools", "--no-session-persistence", "--system-prompt")
"""Without these the transcript could make the model act, or leave a session that is remembered."""

_IF_KNOWN = (
    ("--safe-mode",),
    ("--setting-sources", "user"),
    ("--settings", '{"disableAllHooks": true}'),
    ("--strict-mcp-config",),
    ("--disable-slash-commands",),
)
"""Options that are given to a version that names them in its help.

The user's settings stay, because they may hold the way to log in: `--setting-sources ""` and `--bare`
would be without it. `--safe-mode` takes the rest from them, in versions that have it.
"""

_LIMIT = "--max-turns"
"""No help names it. Without it a model that keeps calling tools it does not have is answered for ever."""

_TURNS = "2"
"""The answer, and another try for one that is not of the structure."""

_SCHEMA = "--json-schema"

_MAX_INSTRUCTIONS_BYTES = 100_000
"""Linux takes no longer argument than 128 KiB."""

_HELP_SECONDS = 30.0

_ENVIRONMENT = {
    CHILD_VARIABLE: "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_MAX_RETRIES": "2",
    "DISABLE_AUTOUPDATER": "1",
    "MAX_THINKING_TOKENS": "0",  # thoughts are paid for like the answer
}


def find_claude(environ: Mapping[str, str]) -> str | None:
    """The program: on the PATH, else where its installers put it; None if it is nowhere."""
    found = find_program("claude", path=environ.get("PATH", os.defpath))
    if found:
        return found
    home = environ.get("HOME", "")
    own = [home + place.removeprefix("~") for place in _USUAL_PLACES] if home else []
    return next((p for p in (*own, *_PLACES_FOR_ALL) if os.access(p, os.X_OK)), None)


class ClaudeCliProvider:
    """`claude -p`, run in an empty directory under `home`, with what `environ` says of the user."""

    name = NAME

    def __init__(
        self, program: str, settings: SummarizeSettings, *, environ: Mapping[str, str], home: Home
    ) -> None:
        self.model = settings.model or USUAL_MODEL
        self._program = program
        self._timeout = settings.timeout_seconds
        self._directory = home.nowhere
        self._environ = outside_session(environ) | _ENVIRONMENT
        self._environ["API_TIMEOUT_MS"] = str(int(settings.timeout_seconds * 1000))
        if settings.base_url:
            self._environ["ANTHROPIC_BASE_URL"] = settings.base_url

    def ask(self, task: Task) -> Reply:
        """One call; see `Provider.ask`."""
        try:
            ended = self._run(task)
        except child.TooSlowError:
            raise too_slow(self.name, self._timeout) from None
        except child.TooMuchOutputError:
            raise UnusableReplyError(
                f"{self._program} wrote far more than an answer", usage=None
            ) from None
        except (OSError, ValueError) as error:
            raise NotConfiguredError(
                f"{self._program} does not start ({excerpt(str(error))}); install Claude Code anew"
            ) from None
        return read_result(ended, task.schema, self.model)

    def _run(self, task: Task) -> child.Ended:
        make_private_directory(self._directory)
        known = self._options()
        command, material = self._command(task, known)
        environ = {**self._environ, "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(task.max_tokens)}

        def run(options: list[str]) -> child.Ended:
            return child.run(
                [*command, *options],
                environ=environ,
                directory=self._directory,
                timeout=self._timeout,
                given=material,
            )

        ended = run([_LIMIT, _TURNS])
        if f"unknown option '{_LIMIT}'" in ended.errors:  # it asked nobody yet
            ended = run([])
        return ended

    def _command(self, task: Task, known: frozenset[str]) -> tuple[list[str], str]:
        """The command line, and what is put into its stdin: the transcript is in the latter alone."""
        instructions, material = sendable(task.instructions), sendable(task.material)
        schema = json.dumps(task.schema)
        options = [option for group in _IF_KNOWN if group[0] in known for option in group]
        if _SCHEMA in known:
            options += [_SCHEMA, schema]
        else:
            instructions += (
                f"\n\nAnswer with one JSON object of this schema and nothing else:\n{schema}"
            )
        if len(instructions.encode()) > _MAX_INSTRUCTIONS_BYTES:
            raise NotConfiguredError(
                f"the instructions are too long for {self._program}; shorten summarize.prompt_file to "
                f"{_MAX_INSTRUCTIONS_BYTES} bytes"
            )
        # With "=", so that nothing of the user's is taken for an option.
        options += ["--tools", "", f"--system-prompt={instructions}", f"--model={self.model}"]
        options += ["--no-session-persistence", "--output-format", "json"]
        return [self._program, "-p", *options], material

    def _options(self) -> frozenset[str]:
        """The options this version names. Raises `NotConfiguredError` if it is too old."""
        state = os.stat(self._program)
        version = (state.st_ino, state.st_mtime_ns, state.st_size)
        environ = tuple(sorted(self._environ.items()))
        known = _named_options(self._program, version, environ, self._directory)
        missing = [option for option in _NEEDED if option not in known]
        if missing:
            raise NotConfiguredError(
                f"{self._program} does not know {', '.join(missing)}; update Claude Code with "
                "`claude update`"
            )
        return known


@functools.lru_cache(maxsize=8)
def _named_options(
    program: str, version: object, environ: tuple[tuple[str, str], ...], directory: str
) -> frozenset[str]:
    """The options in the program's help; asked for once a `version`, which takes half a second."""
    ended = child.run(
        [program, "--help"], environ=dict(environ), directory=directory, timeout=_HELP_SECONDS
    )
    if ended.status != 0:
        raise OSError(ended.errors or f"status {ended.status}")
    return frozenset(re.findall(r"--[a-z][a-z-]*", ended.output))
