"""Recognize shell commands that only read this project's memory: Claude may run them without asking.

Claude Code's own permission check decides about everything else.

Standard library only, Python 3.9 syntax: hooks import this module.
"""

from __future__ import annotations

import re

MOST_CHARACTERS = 100_000

# Text in single quotes, text in double quotes without expansions, an escaped apostrophe, or characters
# without a meaning for a shell.
_WORD = r"""(?!=)(?:'[^']*'|"[^"$`\\!]*"|\\'|[\w.,:/@%+=-])+"""
_READING = re.compile(
    rf"memkit (?:search|expand|transcript|recall)(?: +{_WORD})*", re.ASCII
)
_WITH_QUESTION = re.compile(r"memkit recall --stdin <<'(!?[A-Z_]+)'")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")

_FIELDS = frozenset({"command", "description", "timeout"})
"""Harmless input of the Bash tool. Other fields (sandbox, background) change how a command runs."""

_OTHER_PLACES = ("--project", "--all-projects", "--batch")
"""Prefixes of options that read other projects or files."""


def is_recall_command(given: object) -> bool:
    """Return whether the input of a Bash call is one command that only reads this project's memory."""
    if not isinstance(given, dict) or not _FIELDS.issuperset(given):
        return False
    command = given.get("command")
    if not isinstance(command, str) or len(command) > MOST_CHARACTERS or _CONTROL.search(command):
        return False
    first, *lines = command.rstrip("\n").split("\n")
    if lines:  # a here-document with a quoted delimiter: the shell expands nothing in it
        mark = _WITH_QUESTION.fullmatch(first)
        return mark is not None and mark[1] in lines and lines.index(mark[1]) == len(lines) - 1
    return _READING.fullmatch(first) is not None and _stays_here(first)


def _stays_here(command: str) -> bool:
    import shlex

    kind, *words = shlex.split(command)[1:]
    if any(word.startswith(_OTHER_PLACES) for word in words):
        return False
    # `memkit transcript` accepts the path of any transcript instead of a session id.
    return kind != "transcript" or not any(re.search(r"[/\\]|\.jsonl", word) for word in words)
