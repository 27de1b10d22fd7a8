"""memkit in Codex: its hooks in Codex's `hooks.json`, and its skill. Both are the user's files.

Codex runs a hook only after the user has trusted it there, which memkit leaves to the user.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from memkit.agents.codex.rollout import codex_home
from memkit.errors import MemkitError
from memkit.files import inside, rewrite
from memkit.hook.codex import EVENTS, NAME
from memkit.projects.project import digest16
from memkit.state import parse_json
from memkit.text import one_line

_RUN = f" hook {NAME}"
_OTHERWISE = " || echo '{}'"
"""If memkit is gone, its hooks do nothing."""

_SECONDS = {"SessionEnd": 3}
"""Codex waits no longer for it."""

_MARK = "\n<!-- memkit "
"""Begins the last line of the skill, which has the hash of the rest."""


def hooks_file() -> Path:
    """Return the file of the user's own hooks."""
    return Path(codex_home(), "hooks.json")


def skill_file() -> Path:
    """Return the file of memkit's skill, which has the name that the guide names."""
    return Path(codex_home(), "skills", "memkit", "SKILL.md")


def hooks(command: Sequence[str]) -> dict[str, Any]:
    """Return the hooks by event, which run `command`, memkit's own."""
    return {event: _group(event, f"{shlex.join(command)}{_RUN}{_OTHERWISE}") for event in EVENTS}


def skill(command: Sequence[str]) -> str:
    """Return the text of the skill."""
    text = Path(__file__).with_name("SKILL.md").read_text(encoding="utf-8")
    text = text.replace("$MEMKIT", shlex.join(command))
    return f"{text}{_MARK}{digest16(text)} -->\n"


def install(command: Sequence[str]) -> list[Path]:
    """Write hooks and skill, in place of earlier ones; return the files where the user's edits stay.

    Raise `MemkitError`.
    """
    _rewrite(hooks_file(), partial(_with_hooks, hooks=hooks(command)))
    _rewrite(skill_file(), lambda text: skill(command) if _is_whole(text) else text)
    return edited()


def uninstall() -> None:
    """Remove what `install` wrote, and nothing that was edited since. Raise `MemkitError`."""
    for path, change in (hooks_file(), partial(_with_hooks, hooks={})), (skill_file(), _without_skill):
        if path.exists():
            _rewrite(path, change)
    if skill_file().parent.is_dir() and not any(skill_file().parent.iterdir()):
        skill_file().parent.rmdir()


def is_installed() -> bool:
    """Return whether Codex has hooks of memkit."""
    return any(_is_own(event, one) for event, one in _groups())


def edited() -> list[Path]:
    """Return the files that have something of memkit which the user has edited."""
    found = [hooks_file()] if any(_is_edited(event, one) for event, one in _groups()) else []
    try:
        return found if _is_whole(skill_file().read_text(encoding="utf-8")) else [*found, skill_file()]
    except (OSError, ValueError):
        return found


def _groups() -> list[tuple[str, Any]]:
    try:
        document = _parsed(hooks_file().read_text(encoding="utf-8"))
        return [(event, one) for event, groups in document["hooks"].items() for one in groups]
    except (OSError, ValueError, AttributeError, TypeError):  # none, or not what Codex reads
        return []


def _group(event: str, command: str) -> dict[str, Any]:
    return {"hooks": [{"type": "command", "command": command, "timeout": _SECONDS.get(event, 10)}]}


def _is_own(event: str, group: Any) -> bool:
    """Return whether a group of hooks is as memkit writes it, maybe with another path."""
    try:
        command = group["hooks"][0]["command"]
        return bool(command.endswith(f"{_RUN}{_OTHERWISE}") and group == _group(event, command))
    except (AttributeError, KeyError, IndexError, TypeError):
        return False


def _is_edited(event: str, group: Any) -> bool:
    text = json.dumps(group)
    return "memkit" in text and _RUN in text and not _is_own(event, group)


def _parsed(text: str) -> dict[str, Any]:
    document = parse_json(text) if text.strip() else {}
    hooks = document.setdefault("hooks", {}) if isinstance(document, dict) else None
    if not isinstance(hooks, dict) or not all(isinstance(one, list) for one in hooks.values()):
        raise ValueError("it is not what Codex reads")
    return dict(document)


def _with_hooks(text: str, hooks: dict[str, Any]) -> str:
    """Return Codex's file with these hooks of memkit instead of the ones in it, "" if it has no others."""
    document = _parsed(text)
    table = document["hooks"]
    for event in EVENTS:
        groups = table.get(event, [])
        new = [hooks[event]] if event in hooks and not any(_is_edited(event, one) for one in groups) else []
        own = next((number for number, one in enumerate(groups) if _is_own(event, one)), len(groups))
        left = [one for one in groups if not _is_own(event, one)]
        table[event] = [*left[:own], *new, *left[own:]]  # in its place, which Codex's trust is about
        if not table[event]:
            del table[event]
    if document == {"hooks": {}}:
        return ""
    return text if document == _parsed(text) else json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _is_whole(text: str) -> bool:
    """Return whether the text of a skill is none, or as memkit wrote it."""
    own, mark, rest = text.rpartition(_MARK)
    return not text or (bool(mark) and rest == f"{digest16(own)} -->\n")


def _without_skill(text: str) -> str:
    return "" if _is_whole(text) else text


def _rewrite(path: Path, change: Any) -> None:
    """Change a file of the user. No link is followed out of the directory that Codex's own one is in."""
    try:
        rewrite(inside(str(path), os.path.dirname(codex_home())), change)
    except (OSError, ValueError, AttributeError, TypeError) as error:
        reason = one_line(str(error), 300)
        raise MemkitError(f"cannot change {path}: {reason}; mend the file, or move it away") from error
