"""Which shell commands Claude may run unprompted: those that only read this project's memory.

Anything that is not plainly one such command is left to the client's own permission check.

Standard library only, Python 3.9 syntax: the hooks import this module.
"""

from __future__ import annotations

import re

MOST_CHARACTERS = 100_000

# Text in single quotes, text in double quotes in which nothing is expanded, an escaped apostrophe, or
# characters that mean nothing to a shell.
_WORD = r"""(?!=)(?:'[^']*'|"[^"$`\\!]*"|\\'|[\w.,:/@%+=-])+"""
_READING = re.compile(
    rf"memkit (?:search|expand|transcript|recall)(?: +{_WORD})*", re.ASCII
)
_WITH_QUESTION = re.compile(r"memkit recall --stdin <<'(!?[A-Z_]+)'")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")

_FIELDS = frozenset({"command", "description", "timeout"})
"""Of the Bash tool. Others, as those for the sandbox or the background, change how a command runs."""

_OTHER_PLACES = ("--project", "--all-projects", "--batch")
"""How options begin that read other projects or files."""


def is_recall_command(given: object) -> bool:
    """Whether the input of a Bash call is one command that only reads this project's memory."""
    if not isinstance(given, dict) or not _FIELDS.issuperset(given):
        return False
    command = given.get("command")
    if not isinstance(command, str) or len(command) > MOST_CHARACTERS or _CONTROL.search(command):
        return False
    first, *lines = command.rstrip("\n").split("\n")
    if lines:  # a here-document with a quoted mark: the shell expands nothing in it
        mark = _WITH_QUESTION.fullmatch(first)
        return mark is not None and mark[1] in lines and lines.index(mark[1]) == len(lines) - 1
    return _READING.fullmatch(first) is not None and _stays_here(first)


def _stays_here(command: str) -> bool:
    import shlex

    kind, *words = shlex.split(command)[1:]
    if any(word.startswith(_OTHER_PLACES) for word in words):
        return False
    # The path of any transcript is accepted where the id of a session is.
    return kind != "transcript" or not any(re.search(r"[/\\]|\.jsonl", word) for word in words)
