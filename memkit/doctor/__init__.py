"""Find problems of a memory home and a project, explain them, and fix them.

One module per area has the checks and fixes, `checks` runs them, and `findings.toml` has the texts.
"""

from __future__ import annotations

import functools
import logging
import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from memkit.errors import ConfigError
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.settings import Settings, load
from memkit.typed import typed

logger = logging.getLogger(__name__)

Level = Literal["error", "warning", "note"]
"""An error loses memory or hides it from searches. A warning may lead to that. A note is harmless."""

FIX = "`memkit doctor --fix`"

_PATHS = {"directory", "path", "probe", "root"}
"""The values that are paths, in texts with commands."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem: its `code` for programs, `what` in one line, `meaning` (the consequence), and `fix`."""

    code: str
    level: Level
    what: str
    meaning: str
    fix: str = FIX

    @property
    def fixable(self) -> bool:
        """Whether `checks.apply_fixes` fixes it without harm: `fix` then names the command."""
        return FIX in self.fix


class FindingTexts(msgspec.Struct, forbid_unknown_fields=True):
    """The entry of a code in `findings.toml`: texts with names in braces for the values of a finding."""

    level: Level
    what: str
    meaning: str
    fix: str = FIX


@functools.cache
def finding_texts() -> dict[str, FindingTexts]:
    """Return the texts of all findings by code."""
    data = Path(__file__).with_name("findings.toml").read_bytes()
    return typed(msgspec.toml.decode(data), dict[str, FindingTexts])


def make_finding(code: str, **values: object) -> Finding:
    """Return the finding with this code and these values in its texts.

    A path in a command is quoted for the shell: a repository chooses the names of its files, and the user,
    or an agent, runs the command.
    """
    texts = finding_texts()[code]
    what, meaning = texts.what.format(**values), texts.meaning.format(**values)
    quoted = {name: shlex.quote(str(values[name])) for name in _PATHS & values.keys()}
    parts = enumerate(texts.fix.split("`"))  # each second part is a command
    fix = "`".join(part.format(**(values | quoted if number % 2 else values)) for number, part in parts)
    return Finding(code, texts.level, what, meaning, fix)


@dataclass(frozen=True, slots=True)
class Subject:
    """The memory home and the project that the checks examine, at `now` (seconds since the epoch).

    `refused` are settings that the project's file may not change. `problem` is the error if the settings
    cannot be read. `announce` gets a line about a long step of a fix.
    """

    home: Home
    project: Project
    now: float
    loaded: Settings | None
    problem: ConfigError | None = None
    refused: tuple[str, ...] = ()
    announce: Callable[[str], None] = logger.info

    @property
    def settings(self) -> Settings:
        """The settings. Raise `ConfigError` if they cannot be read.

        `checks` skips a check or fix that raises it. Falling back to the defaults would use another index,
        and might delete or send what the user's settings protect.
        """
        if self.loaded is None:
            raise self.problem or ConfigError("the settings cannot be read")
        return self.loaded


def open_subject(home: Home, project: Project) -> Subject:
    """Load the settings of a home and a project. Settings that cannot be read are no error here."""
    try:
        loaded = load.load(home, project)
    except ConfigError as error:
        logger.info("examined without settings: %s", error)
        return Subject(home, project, time.time(), None, error)
    return Subject(home, project, time.time(), loaded.settings, None, tuple(loaded.refused))


def split_advice(error: Exception | str) -> tuple[str, str]:
    """Return an error message without its advice, and the advice that follows the first semicolon."""
    what, _, advice = str(error).partition("; ")
    return what, advice
