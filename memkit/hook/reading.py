"""Decide which commands Claude may run unprompted: one memkit command that only reads this project's
memory.

The command comes from a model, which may have read a stranger's text. So it must consist of words that no
shell changes, and of a command and options listed here. Claude Code asks the user about everything else.
"""

from __future__ import annotations

import re

COMMANDS = {
    "search": "-k --budget --mode --since --until --session --branch --agent --kind --path --file "
    "--min-relevance --all --explain --full",
    "expand": "",
    "cite": "--context",
    "transcript": "--turn --context",
    "show": "",
    "sessions": "-n --since --branch --agent --file",
    "resume": "",
    "timeline": "--children --search --events --depth --limit --after",
    "why": "-n",
    "fix": "-n",
    "how": "-n",
    "topics": "-n",
    "recall": "",
}
"""The commands, each with its options. `ASKING` lists the options that are left out."""

ALWAYS = "--json --help -h"

ASKING = "--project --all-projects --user --batch --go --refresh --background"
"""Options that read other memories or files, start Claude Code, compute for long, or ask a model."""

_TAKE_IDS = ("expand", "cite", "transcript", "show")
"""Commands whose arguments are ids, days, and numbers. `memkit transcript` reads any file at a path."""

_TOPICS_ACTIONS = ("show", "related", "search")
"""The actions of `memkit topics` that only read. `rename` is not one."""

_COMMAND_CHARACTERS = 100_000
_CONTROL = r"[\x00-\x08\x0b-\x1f\x7f]"

_START = r"memkit ([a-z]+)(?= |$)"
_PIECE = r"""( +)|'([^'\\]*)'|"([^"$`\\!]*)"|\\(')|([A-Za-z0-9_.,:/@%+-]+)|(=)"""
"""Spaces; text in single quotes, or in double quotes without expansions; an escaped apostrophe; characters
without a meaning for a shell. No backslash in quotes: shells differ about it."""

_OPTION = r"(--[a-z-]+)(?:=.*)?|(-[kn])[0-9]+|(-[a-z])"
_WITH_QUESTION = r"memkit recall --stdin <<'(!?[A-Z_]+)'"

_BASH_FIELDS = frozenset({"command", "description", "timeout"})
"""Harmless input fields of the Bash tool. Other fields (sandbox, background) change how a command runs."""


def is_one_note(given: object) -> bool:
    """Return whether the input of a Bash call is `memkit remember` with one text and nothing else."""
    words = words_of(_command_of(given).rstrip("\n")) or []
    return words[:1] == ["remember"] and len(words) == 2 and not words[1].startswith("-")


def _command_of(given: object) -> str:
    if not isinstance(given, dict) or not _BASH_FIELDS.issuperset(given):
        return ""
    command = given.get("command")
    if not isinstance(command, str) or len(command) > _COMMAND_CHARACTERS or re.search(_CONTROL, command):
        return ""
    return command


def is_reading_command(given: object) -> bool:
    """Return whether the input of a Bash call is one command that only reads this project's memory."""
    first, *lines = _command_of(given).rstrip("\n").split("\n")
    if lines:  # a here-document with a quoted delimiter: the shell expands nothing in it
        mark = re.fullmatch(_WITH_QUESTION, first)
        return mark is not None and mark[1] in lines and lines.index(mark[1]) == len(lines) - 1
    words = words_of(first)
    if words is None or words[0] not in COMMANDS:
        return False
    kind, *rest = words
    if kind == "topics" and not _reads_topics(rest):
        return False
    allowed = f"{COMMANDS[kind]} {ALWAYS}".split()
    for word in rest:
        if word.startswith("-"):
            option = re.fullmatch(_OPTION, word, re.DOTALL)
            if option is None or option[option.lastindex or 0] not in allowed:
                return False
        if kind in _TAKE_IDS and re.search(r"[/\\]|\.\.|\.jsonl", word):
            return False
    return True


def _reads_topics(rest: list[str]) -> bool:
    """Return whether the first word, if any, is a reading action: no option can hide another after it."""
    if rest and rest[0] in _TOPICS_ACTIONS:
        return True
    return all(re.fullmatch("-.*|[0-9]+", word) for word in rest)


def words_of(command: str) -> list[str] | None:
    """Return the words after `memkit`, as every shell reads them; None if a shell could change them."""
    start = re.match(_START, command)
    if start is None:
        return None
    words, is_open, at = [start[1]], False, start.end()
    for piece in re.finditer(_PIECE, command[at:]):
        if start.end() + piece.start() != at:
            return None
        at = start.end() + piece.end()
        if piece[1] is not None:
            is_open = False
            continue
        if not is_open:
            words.append("")
            is_open = True
        # zsh expands `=ls` at the start of a word.
        if piece[6] and not re.fullmatch(r"--[a-z-]+", words[-1]):
            return None
        words[-1] += piece[piece.lastindex or 0]
    return words if at == len(command) else None
