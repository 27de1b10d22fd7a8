"""`memkit sessions` and `memkit resume`."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from datetime import date
from itertools import chain, islice
from typing import TYPE_CHECKING

import click

from memkit.cli.context import AgentName, Context, command, iso_day_named, path_named
from memkit.cli.output import NAME_COLUMNS, column, echo, lines_between, other_agent, plain, styled
from memkit.cli.screen import ID_CHARACTERS, MOST_COLUMNS, cells, fit, pad, to_edge, width
from memkit.errors import MemkitError, NotFoundError
from memkit.processes import find_program
from memkit.projects.trust import in_session
from memkit.text import plural

if TYPE_CHECKING:
    from memkit.browse.resume import FoundSession, Resumable
    from memkit.search.overview import PastSession

MOST_SHOWN = 5


@command("resume")
@click.argument("words", nargs=-1, required=True, metavar="WORDS…|ID")
@click.option("--go", is_flag=True, help="Resume the best one now.")
@click.option("--all-projects", is_flag=True, help="Search the sessions of all projects.")
def resume_command(context: Context, words: tuple[str, ...], go: bool, all_projects: bool) -> None:
    """Find a session by what was said in it, and print the command that resumes it.

    Name it by words, by its ID, or by the ID of a turn in it. Prints the command for the best session, and
    the IDs of others. Words that begin with a dash go after `--`.

    \b
      memkit resume staging gateway port
      memkit resume 8bb06550 --go
    """
    from memkit.browse.resume import as_dict

    if go and in_session():
        raise MemkitError("a Claude Code session cannot start another; run this in a terminal of your own")
    memory = context.memory()
    found = memory.find_sessions(*words, all_projects=all_projects)[:MOST_SHOWN]
    if not found:
        is_limited = context.may_leave_project and not all_projects
        elsewhere = ", --all-projects those of others" * is_limited
        raise NotFoundError(f"no session matches; `memkit sessions` lists them{elsewhere}")
    way, problem = None, ""
    try:
        way = memory.resumable(found[0])
    except MemkitError as error:
        if go:
            raise
        problem = str(error)
    if go and way is not None:
        _run(way)
        return
    if context.as_json:
        rest = [as_dict(one, None, "") for one in found[1:]]
        for one in rest:  # not looked up
            del one["directory"], one["command"]
        context.print_json({**as_dict(found[0], way, problem), "others": rest})
        return
    _show(found[0], "" if all_projects else context.project.root)
    if way is not None:
        click.echo(plain(way.command))
    else:
        echo(problem.replace("; ", "\n"))
    if others := found[1:]:
        echo("\nOthers:", dim=True)
        for other in others:
            _show(other, "" if all_projects else context.project.root, bold=False)


def _show(session: FoundSession, root: str, *, bold: bool = True) -> None:
    columns = min(width(), MOST_COLUMNS)
    project = f"{os.path.basename(session.root)}: " if session.root != root else ""
    name = plain(session.id)[:8]
    title = to_edge(plain(project + session.title), columns - len(session.date) - len(name) - 4)
    click.echo(f"{styled(f'{session.date}  {title}', bold=bold)}  {styled(name, dim=True)}")


def _run(way: Resumable) -> None:
    """Replace this process by Claude Code, in the session's directory. Raise `MemkitError`."""
    program, *arguments = way.arguments
    claude = find_program(program)
    if claude is None:
        raise NotFoundError(f"there is no `{program}` on PATH; run this where it is: {way.command}")
    sys.stdout.flush()
    try:
        if sys.platform == "win32":  # which has no way to replace a process
            sys.exit(subprocess.run([claude, *arguments], cwd=way.directory, check=False).returncode)
        os.chdir(way.directory)
        os.execv(claude, [claude, *arguments])
    except OSError as error:
        raise MemkitError(f"cannot run {claude} in {way.directory}: {error.strerror}") from error


DEFAULT_COUNT = 50
_LEAST_TITLE = 36
_LEAST_OUTCOME = 8
_SPAN_COLUMNS = 40
_WIDE = 116
"""From this width on, a session is one line. Below it, the outcome has a line of its own."""


@command("sessions")
@click.option(
    "--since", metavar="DAY", help="Only sessions active from this day on: 2026-11-20, 3d, last monday.",
)
@click.option("--branch", default="", help="Only sessions with a turn on this git branch.")
@click.option(
    "--file", default="", metavar="PATH", help="Only sessions that read or edited this file."
)
@click.option("--agent", type=AgentName(), default="", help="Only sessions of this agent.")
@click.option("--all-projects", is_flag=True, help="List the sessions of all projects.")
@click.option(
    "-n", "count", type=click.IntRange(1), default=DEFAULT_COUNT, show_default=True,
    help="Number of sessions.",
)  # fmt: skip
def sessions_command(
    context: Context, since: str | None, branch: str, file: str, agent: str, all_projects: bool, count: int
) -> None:
    """List sessions, newest first: date, time, title, outcome, turns, branch, ID.

    `memkit show ID` shows one. A list longer than the screen opens in $PAGER.

    \b
      memkit sessions --since "last monday"
      memkit sessions --file deploy/gateway.yaml
    """
    list_sessions(
        context, count, since=iso_day_named(since), branch=branch, all_projects=all_projects,
        file=path_named(file, context.project.root), agent=agent,
    )  # fmt: skip


def list_sessions(
    context: Context, count: int = DEFAULT_COUNT, *, since: str = "", branch: str = "", file: str = "",
    agent: str = "", all_projects: bool = False,
) -> None:
    """Print the newest sessions. `since` is an ISO day, `file` a path as memory shows it."""
    found = context.memory().sessions(
        since=since, branch=branch, file=file, all_projects=all_projects, agent=agent
    )
    shown = list(islice(found, count + 1))
    lines = session_rows(shown[:count], all_projects) if shown else []
    if not shown:
        is_filtered = bool(since or branch or file or agent)
        where = "any project" if all_projects else context.project.root
        is_limited = not all_projects and context.may_leave_project
        elsewhere = " --all-projects lists those of all projects." * is_limited
        lines = [plain(f"No {'such ' * is_filtered}session in {where}.{elsewhere}")]
    if len(shown) > count:
        given = {"--since": since, "--branch": branch, "--file": file, "--agent": agent}
        options = [f" {name} {shlex.quote(plain(value))}" for name, value in given.items() if value]
        options += [" --all-projects"] * all_projects
        lines.append(styled(f"Older ones: memkit sessions{''.join(options)} -n {count * 4}", dim=True))
    context.report_page({"sessions": shown[:count]}, lines)


def session_rows(found: Sequence[PastSession], all_projects: bool, few: int = 0) -> list[str]:
    """Return the lines of a head and of each session, as wide as the screen; two for each of a `few`."""
    columns = width()
    is_wide = columns >= _WIDE and len(found) > few
    left = [column("begun", [_span(one, with_end=is_wide) for one in found], _SPAN_COLUMNS)]
    if all_projects:
        left.append(column("project", [os.path.basename(one.root) for one in found], NAME_COLUMNS))
    right = []
    if is_wide:
        right.append(["turns", *(f"{len(one.turns):>5}" for one in found)])
        right.append(column("branch", [_short_branch(one.branch) for one in found], NAME_COLUMNS))
    right.append(column("id", [one.id[:ID_CHARACTERS] for one in found], ID_CHARACTERS))

    def titles(room: int) -> list[str]:
        head = styled(pad("title → outcome" if is_wide else "title", room), dim=True)
        return [head, *(_title(one, room, with_outcome=is_wide) for one in found)]

    lines = lines_between(left, right, columns, titles)
    if is_wide:
        return lines
    indent = max(map(cells, left[0])) + 2
    with_branch = len({one.branch for one in found}) > 1
    below = (f"{' ' * indent}{_details(one, columns - indent, with_branch)}" for one in found)
    return [lines[0], *chain.from_iterable(zip(lines[1:], below, strict=True))]


def _short_branch(branch: str) -> str:
    parent, _, last = branch.rpartition("/")
    return f"…/{last}" if parent and cells(branch) > NAME_COLUMNS else branch


def _title(session: PastSession, columns: int, *, with_outcome: bool) -> str:
    title, outcome = _words(session.title), _words(session.outcome)
    if agent := other_agent(session.id):
        title = f"{agent}: {title}"
    if not with_outcome or not outcome or outcome == title or columns < _LEAST_TITLE + _LEAST_OUTCOME:
        return styled(pad(title, columns), bold=True)
    shown = fit(title, max(_LEAST_TITLE, columns - 3 - cells(fit(outcome, columns))))
    return f"{styled(shown, bold=True)} {pad(f'→ {outcome}', columns - cells(shown) - 1)}"


def _details(session: PastSession, columns: int, with_branch: bool) -> str:
    facts = plural(len(session.turns), "turn")
    if with_branch and session.branch:
        facts += f", {_short_branch(plain(session.branch))}"
    outcome = _words(session.outcome)
    if not outcome or columns < cells(facts) + 2 + _LEAST_OUTCOME:
        return fit((outcome and f"→ {outcome}") or facts, columns)
    return f"{to_edge(f'→ {outcome}', columns - cells(facts) - 2)}  {styled(facts, dim=True)}"


def _words(text: str) -> str:
    return plain(text).replace("**", "")


def _span(session: PastSession, *, with_end: bool) -> str:
    """Return when a session began, and ended: `2026-11-20 23:50–00:20`; `14:02+3` if resumed 3 days later."""
    begins, ends = session.begins, session.ends
    try:
        days = (date.fromisoformat(ends[:10]) - date.fromisoformat(begins[:10])).days
    except ValueError:  # a file named like a day, but for no day of the calendar
        days = 0
    if days > 1 or (days == 1 and ends[11:] >= begins[11:]):
        return f"{begins}+{days}"
    return f"{begins}–{ends[11:]}" if with_end and begins != ends else begins
