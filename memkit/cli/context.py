"""The start of every command: common options, home, project, settings, and access to the memory."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from memkit.cli.output import echo, json_line, plain
from memkit.cli.screen import page
from memkit.errors import MemkitError, NotFoundError
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.projects.trust import in_session
from memkit.state import parse_json

if TYPE_CHECKING:
    from datetime import date

    from memkit.interface import InterfaceMemory
    from memkit.settings.load import Settings


_LEAVING = ("all_projects", "everywhere", "user")
"""The parameters that let a command use another memory than the project's."""

_CHECKED_LATER = ("recall", "service", "statusline", "work")
"""`recall` reports a refusal as its answer. Hooks and Claude Code itself start the others."""


class Context:
    """One run of a command: where it works, and whether it prints JSON."""

    def __init__(self, project: str | None, as_json: bool) -> None:
        self.as_json = as_json
        self.home = Home.from_environment()
        self._project = project
        self._reported: set[str] = set()

    @functools.cached_property
    def directory(self) -> str:
        """The directory of `--project`, or the working directory. Raise `NotFoundError`."""
        try:
            directory = self._project or os.getcwd()
        except FileNotFoundError as error:
            raise NotFoundError("the working directory is gone; name one with --project") from error
        if not os.path.isdir(directory):
            raise NotFoundError(f"no such directory: {directory}")
        return directory

    @functools.cached_property
    def project(self) -> Project:
        """The project that the directory belongs to. Raise `NotFoundError`."""
        return Project.remembering(self.directory, self.home)

    @property
    def names_project(self) -> bool:
        """Whether the user gave `--project`."""
        return self._project is not None

    def turn_to_user_memory(self) -> None:
        """Use the user's own memory instead of the project's from now on."""
        self.project = Project.of_user(self.home)

    @functools.cached_property
    def may_leave_project(self) -> bool:
        """Whether other projects may be read. In a Claude Code session, the user's settings decide."""
        return not in_session() or self.settings().recall.other_projects

    def stay_in_project(self, leaves: bool = False) -> None:
        """Raise `MemkitError` if a command of a session uses another project's memory without permission.

        `leaves` means that it uses others regardless of `--project`. Claude can run some commands without
        asking the user.
        """
        if not in_session():
            return
        leaves = leaves or self.project != Project.remembering(self._session_root() or os.getcwd(), self.home)
        if leaves and not self.may_leave_project:
            from memkit.browse.transcript import REFUSAL

            raise MemkitError(REFUSAL)

    def _session_root(self) -> str:
        """Return the project where the session began, whatever `cd` did; "" if no hook has reported it."""
        from memkit.questions.caller import SESSION_VARIABLE

        session = os.path.basename(os.environ.get(SESSION_VARIABLE, ""))
        # A worker may record a waiting event between the first two looks.
        return self._recorded_root(session) or self._waiting_root(session) or self._recorded_root(session)

    def _recorded_root(self, session: str) -> str:
        try:  # without `Sessions`, which takes 0.1 s to import
            with open(os.path.join(self.home.sessions, f"{session}.json"), encoding="utf-8") as file:
                return str(parse_json(file.read())["project"])
        except (OSError, ValueError, KeyError, TypeError):
            return ""

    def _waiting_root(self, session: str) -> str:
        from memkit.ipc import spool

        for _, event in [*spool.unfinished(self.home), *spool.failed(self.home)]:
            if event.get("session") == session:
                return str(event.get("project", ""))
        return ""

    def settings(self) -> Settings:
        """Return the project's settings."""
        return self.settings_of(self.project)

    def settings_of(self, project: Project) -> Settings:
        """Return a project's settings; report once that its `.memkit.toml` sets what it may not.

        Strangers may have written that file, and Claude reads this report: it quotes nothing of it.
        """
        from memkit.cli.log_file import log_to_file
        from memkit.settings import load
        from memkit.text import plural

        log_to_file(self.home)
        loaded = load.load(self.home, project)
        if loaded.refused and project.root not in self._reported:
            self._reported.add(project.root)
            lines = plural(len(loaded.refused), "line")
            self.say(f"{load.PROJECT_FILE}: {lines} ignored; `memkit config` says why")
        return loaded.settings

    def memory(self, *, for_agent: bool = False) -> InterfaceMemory:
        """Return the project's memory with this command's settings, messages, and limits.

        `for_agent` means that a model asks, as in a session: the user's settings decide on other projects.
        """
        from memkit.interface import InterfaceMemory
        from memkit.questions.caller import SESSION_VARIABLE, Caller

        return InterfaceMemory(
            self.project, home=self.home, settings_of=self.settings_of, announce=self.say,
            other_projects=self.settings().recall.other_projects if for_agent else self.may_leave_project,
            caller=Caller(self.directory, os.environ.get(SESSION_VARIABLE, "")),
        )  # fmt: skip

    def report(self, value: Mapping[str, Any], *lines: str) -> None:
        """Print a command's result: `value` with `--json`, else `lines`."""
        if self.as_json:
            self.print_json(value)
            return
        for line in lines:
            echo(line)

    def report_page(self, value: Mapping[str, Any], lines: Iterable[str]) -> None:
        """Print a command's result: `value` with `--json`, else styled lines, paged if they are long."""
        if self.as_json:
            self.print_json(value)
        else:
            page("\n".join(lines))

    def print_json(self, value: Any) -> None:
        """Print a JSON object on a line of stdout."""
        click.echo(json_line(value))

    def say(self, line: str) -> None:
        """Print a line for the user on stderr; stdout is for the result."""
        click.echo(f"memkit: {plain(line)}", err=True)

    @contextmanager
    def progress(
        self, what: str, *, is_bytes: bool = False, is_counted: bool = True
    ) -> Iterator[Callable[[int, int], None]]:
        """Yield a function that takes the done and the total count and shows a progress bar on stderr.

        Nothing is shown with `--json`, or where stderr is not a terminal. If `is_bytes`, the bar also shows
        the rate. Without `is_counted`, a spinner and the time replace the bar.
        """
        if self.as_json or not sys.stderr.isatty():
            yield lambda done, total: None
            return
        from rich import progress
        from rich.console import Console

        columns: list[progress.ProgressColumn] = [progress.TextColumn("{task.description}", markup=False)]
        if not is_counted:
            columns = [progress.SpinnerColumn("line"), *columns, progress.TimeElapsedColumn()]
        else:
            amount: list[progress.ProgressColumn] = [progress.MofNCompleteColumn()]
            if is_bytes:
                amount = [progress.DownloadColumn(), progress.TransferSpeedColumn()]
            columns += [progress.BarColumn(), *amount, progress.TimeRemainingColumn()]
        with progress.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(plain(what), total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)

    def check(self, problems: Iterable[str], message: str) -> None:
        """Print each problem on stderr; then, if there was one, raise `MemkitError` with `message`."""
        problems = list(problems)
        for line in problems:
            self.say(line)
        if problems:
            raise MemkitError(message)


def command(name: str) -> Callable[[Callable[..., None]], click.Command]:
    """Make a click command of a function whose first argument is a `Context`; add `--json`, `--project`."""

    def decorate(function: Callable[..., None]) -> click.Command:
        @click.command(name)
        @functools.wraps(function)
        def run(project: str | None, as_json: bool, **arguments: Any) -> None:
            context = Context(project, as_json)
            if name not in _CHECKED_LATER:
                context.stay_in_project(any(map(arguments.get, _LEAVING)))
            function(context, **arguments)

        where = "Use the project at PATH (default: the working directory's)."
        run.params += [
            click.Option(["--project"], type=click.Path(), metavar="PATH", help=where),
            click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON object."),
        ]
        return run

    return decorate


class AgentName(click.ParamType[str]):
    """The name of an agent whose sessions memkit reads, or ""."""

    name = "name"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name. Fail for another one."""
        from memkit.agents.registry import AGENTS

        names = [one.name for one in AGENTS]
        if value and value not in names:
            self.fail(f"{value!r} is not an agent; use {', '.join(names)}", param, ctx)
        return value


def day_named(text: str | None) -> date | None:
    """Return the day that an option names, or None if it was not given. Raise `MemkitError`."""
    if not text:
        return None
    from datetime import date

    from memkit.questions.period_days import parse_day

    return parse_day(text, date.today())


def iso_day_named(text: str | None) -> str:
    """Return the day that an option names as an ISO date, or `""` if it was not given."""
    day = day_named(text)
    return day.isoformat() if day else ""


def node_named(text: str) -> str:
    """Return a day in words, such as "last tuesday", as an ISO date, and any other name as it is."""
    is_day = " " in text or text.endswith("day")  # an ID has neither
    return iso_day_named(text) if is_day else text


def path_named(path: str, *roots: str) -> str:
    """Return the path that an option names as relative to one of `roots`, with slashes.

    A path elsewhere stays as it is, and so does a relative one that does not exist: it may be the end of one.
    A link stays a link.
    """
    if os.path.isabs(path) or os.path.lexists(path):
        real = os.path.join(os.path.realpath(os.path.dirname(path) or "."), os.path.basename(path))
        for root in roots:
            relative = os.path.relpath(real, root)
            if relative.split(os.sep)[0] != os.pardir:
                return relative.replace(os.sep, "/")
    return path.replace(os.sep, "/").removeprefix("./")
