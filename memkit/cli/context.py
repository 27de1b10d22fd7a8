"""What every command shares: its options, the project and settings it works on, and how it prints."""

from __future__ import annotations

import functools
import math
import os
import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from memkit.errors import MemkitError, NotFoundError
from memkit.hook.project import Project
from memkit.hook.session_variables import in_session
from memkit.paths import Home

if TYPE_CHECKING:
    from datetime import date

    from memkit.llm.ledger import Total
    from memkit.memory import Memory
    from memkit.settings.load import Key, Settings

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# What steers a terminal, changes the direction of text, or ends a line where nobody sees it.
_UNSAFE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)


class Context:
    """One run of a command: where it works, and whether it prints JSON."""

    def __init__(self, project: str | None, as_json: bool) -> None:
        self.as_json = as_json
        self.home = Home.from_environment()
        self._project = project
        self._said: set[str] = set()

    @functools.cached_property
    def directory(self) -> str:
        """The directory of `--project`, else the working directory. Raises `NotFoundError`."""
        try:
            directory = self._project or os.getcwd()
        except FileNotFoundError as error:
            raise NotFoundError("the working directory is gone; name one as --project") from error
        if not os.path.isdir(directory):
            raise NotFoundError(f"no such directory: {directory}")
        return directory

    @functools.cached_property
    def project(self) -> Project:
        """The project that remembers what is done in the directory. Raises `NotFoundError`."""
        return Project.remembering(self.directory, self.home)

    def turn_to_user_memory(self) -> None:
        """Work on what is true across projects from now on, whatever the directory."""
        self.project = Project.of_user(self.home)

    @functools.cached_property
    def may_leave_project(self) -> bool:
        """Whether other projects may be read: in a Claude Code session only if the user's settings say so."""
        return not in_session() or self.settings_of(self.project).recall.other_projects

    def stay_in_project(self, leaves: bool = False) -> None:
        """Raise `MemkitError` if another project than the session's is named, or the command `leaves` it.

        Claude may run commands that read unprompted.
        """
        named = self.names_project and self.project != Project.remembering(os.getcwd(), self.home)
        if (leaves or named) and not self.may_leave_project:
            raise MemkitError(
                "in a Claude Code session only the memory of its project is read; "
                "the person can run this in a terminal"
            )

    @property
    def names_project(self) -> bool:
        """Whether `--project` was given."""
        return self._project is not None

    def settings(self, flags: dict[Key, Any] | None = None) -> Settings:
        """The settings of the project; what its file may not set is named on stderr."""
        return self.settings_of(self.project, flags)

    def settings_of(self, project: Project, flags: dict[Key, Any] | None = None) -> Settings:
        """The settings of any project."""
        from memkit.cli.log import log_to_file
        from memkit.settings import load

        log_to_file(self.home)
        loaded = load.load(self.home, project, flags)
        for line in loaded.refused:
            if line not in self._said:
                self.say(line)
                self._said.add(line)
        return loaded.settings

    def memory(self, flags: dict[Key, Any] | None = None) -> Memory:
        """Return the project's memory with this command's settings, messages, and limits."""
        from memkit.memory import Memory

        return Memory(
            self.project,
            home=self.home,
            settings_of=functools.partial(self.settings_of, flags=flags),
            announce=self.say,
            other_projects=self.may_leave_project,
        )

    def print_json(self, value: Any) -> None:
        """One JSON object on a line of stdout."""
        from memkit.cli import json_line

        click.echo(json_line(value))

    def say(self, line: str) -> None:
        """A line for the person, on stderr so that stdout stays the answer."""
        click.echo(f"memkit: {plain(line)}", err=True)


def counted(number: int, noun: str) -> str:
    """A number with its noun: `1 day`, `2 days`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def sized(count: int) -> str:
    """A number of bytes: `812 bytes`, `3.4 MB`."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return counted(count, "byte")


def day_named(text: str | None) -> date | None:
    """The day that an option names, seen from today; None if it was not given. Raises `MemkitError`."""
    if not text:
        return None
    from datetime import date

    from memkit.recall.results import parse_day

    return parse_day(text, date.today())


def iso_day_named(text: str | None) -> str:
    """The same as an ISO date, "" if it was not given."""
    day = day_named(text)
    return day.isoformat() if day else ""


def confirm(question: str, yes: bool) -> None:
    """Go on only if the person says so; `yes` says that they have. Raises `MemkitError`, `click.Abort`."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise MemkitError("nobody is there to be asked; `--yes` starts it")
    click.confirm(question, abort=True, err=True)


def about_dollars(usd: float | None) -> str:
    """An estimated price, in two digits that say something."""
    if usd is None:
        return "price unknown"
    digits = 2 if usd >= 0.1 or not usd else 1 - math.floor(math.log10(usd))
    return f"about ${usd:.{digits}f}"


def dollars(total: Total) -> str:
    """What is known of a cost; a call of an unknown price is never said to be free."""
    if total.unpriced == total.calls:
        return "unknown"
    known = f"${total.usd:.4f}" if total.usd < 1 else f"${total.usd:.2f}"
    return f"{known} + {total.unpriced} unknown" if total.unpriced else known


def plain(text: str) -> str:
    """`text` as it is safe on a terminal: without colors, control characters, and bidi controls.

    Newlines and tabs stay. All that comes from memory, transcripts, or file names passes through here.
    """
    return _UNSAFE.sub("\ufffd", click.unstyle(text.replace("\r\n", "\n")))


def plain_file(text: str) -> str:
    """`text` as it goes into a file: all of it but colors and control characters."""
    return _CONTROL.sub("\ufffd", click.unstyle(text.replace("\r\n", "\n")))


def escaped(line: str) -> str:
    """A line of JSON that is safe on a terminal, and says the same."""
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", line)


def styled(text: str, **style: Any) -> str:
    """`text` in the colour or weight that `style` names (see `click.style`); plain with `NO_COLOR`.

    `click.echo` takes the style off again where stdout is no terminal. `rich` could do the same, but
    costs every command 0.04 s.
    """
    return text if os.environ.get("NO_COLOR") else click.style(text, **style)


def command(name: str) -> Callable[[Callable[..., None]], click.Command]:
    """A click command whose function gets a `Context` first; adds `--json` and `--project`."""

    make: Callable[[Callable[..., None]], click.Command] = click.command(name)

    def decorate(function: Callable[..., None]) -> click.Command:
        @functools.wraps(function)
        def run(project: str | None, as_json: bool, **arguments: Any) -> None:
            function(Context(project, as_json), **arguments)

        made = make(run)
        made.params += [
            click.Option(
                ["--project"],
                type=click.Path(),
                metavar="PATH",
                help="The project; by default that of the working directory.",
            ),
            click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON object."),
        ]
        return made

    return decorate
