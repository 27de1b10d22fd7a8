"""Every `memkit …` that a page, a help text or a message has people type is one there is."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click

from memkit.cli import cli

REPOSITORY = Path(__file__).resolve().parents[2]
TEXTS = sorted(
    path
    for pattern in ("*.md", "docs/*.md", "skills/**/*.md", "memkit/**/*.py", "hooks/*.py")
    for path in REPOSITORY.glob(pattern)
    if path.name != "CHANGELOG.md"  # names what was removed
)

IN_A_LINE = re.compile(r"`(?:bin/)?memkit ([^`]+)`")
ON_A_LINE = {
    ".md": re.compile(r"^ {4,}(?:\$ )?(?:bin/)?memkit (.+)$", re.MULTILINE),
    ".py": re.compile(r"^ {6}memkit (.+)$", re.MULTILINE),  # an example in the help of a command
}
ENDS = {"|", ">", "<", "&&", ";"}
"""What the shell, not memkit, reads."""

HELP = {"-h", "--help", "--version"}


def typed(text: str, kind: str = ".md") -> Iterator[list[str]]:
    """The words after `memkit` in each command of a text, without comments and brackets."""
    spans = [" ".join(found.split()) for found in IN_A_LINE.findall(text)]
    for line in spans + ON_A_LINE[kind].findall(text):
        words = []
        for word in shlex.split(line, comments=True):
            if word in ENDS or word.startswith("<<"):
                break
            words.append(word.strip("[]").replace("\\", ""))
        yield [word for word in words if word not in ("…", "OPTIONS", "")]


def complaint(words: list[str]) -> str:
    """What is wrong with a command; "" if nothing is."""
    command: click.Command = cli
    rest = list(words)
    while rest and rest[0] == "--set":  # before the command
        if len(rest) < 2 or "=" not in rest[1]:
            return "--set without a value"
        del rest[:2]
    while rest and isinstance(command, click.Group) and rest[0] not in HELP and not _stands_for_any(rest[0]):
        found = command.get_command(click.Context(command), rest[0])
        if found is None:
            return f"no command {rest[0]}"
        command = found
        del rest[0]
    options = {
        name: option
        for option in command.params
        if isinstance(option, click.Option)
        for name in (*option.opts, *option.secondary_opts)
    }
    arguments = [one for one in command.params if isinstance(one, click.Argument)]
    while rest:
        word = rest.pop(0)
        if word in HELP or isinstance(command, click.Group):
            continue
        if word == "--":  # the rest is no option, however it begins
            return "" if arguments and arguments[0].nargs < 0 else "nothing takes the words after --"
        if not word.startswith("-"):
            if not arguments:
                return f"{word!r} is one too many"
            argument = arguments[0] if arguments[0].nargs < 0 else arguments.pop(0)
            if not _fits(argument, word):
                return f"no {word!r}"
        elif word not in options:
            return f"no option {word}"
        elif not options[word].is_flag:
            values, rest = rest[: options[word].nargs], rest[options[word].nargs :]
            if len(values) < options[word].nargs or not all(_fits(options[word], v) for v in values):
                return f"no such value for {word}"
    return ""


def _fits(parameter: click.Parameter, word: str) -> bool:
    kind = parameter.type
    if not isinstance(kind, click.Choice) or _stands_for_any(word):
        return True
    return all(part in kind.choices for part in word.split("|"))


def _stands_for_any(word: str) -> bool:
    """Whether a word is a placeholder: `ID`, `PATH…`, `{something}`."""
    return word.strip("…").isupper() or word.startswith("{")


def test_commands_are_known() -> None:
    found = [
        (str(path.relative_to(REPOSITORY)), " ".join(words), complaint(words))
        for path in TEXTS
        for words in typed(path.read_text(encoding="utf-8"), path.suffix)
    ]
    assert [one for one in found if one[-1]] == []
    assert len(found) > 200


def test_a_wrong_one_is_noticed() -> None:
    for line, wrong in (
        ("`memkit search QUERY --all`", ""), ("    memkit transcript --turn 8b52f4fb   # the original", ""),
        ("`memkit serach x`", "no command serach"),
        ("    $ memkit search x --everything", "no option --everything"),
        ("`memkit search x --mode guess`", "no such value for --mode"),
        ("`memkit service stat`", "no 'stat'"), ("`memkit status now`", "'now' is one too many"),
    ):  # fmt: skip
        assert [complaint(words) for words in typed(line)] == [wrong]
