"""`memkit resume`."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import click

from memkit.cli.context import Context, command
from memkit.cli.output import echo, plain, styled
from memkit.cli.screen import MOST_COLUMNS, pad, width
from memkit.errors import MemkitError, NotFoundError
from memkit.processes import find_program
from memkit.projects.trust import in_session

if TYPE_CHECKING:
    from memkit.recall.resume import FoundSession, Resumable

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
    from memkit.recall.resume import as_dict

    if go and in_session():
        raise MemkitError("a Claude Code session cannot start another; run this in a terminal of your own")
    memory = context.memory()
    found = memory.find_sessions(*words, all_projects=all_projects)[:MOST_SHOWN]
    if not found:
        raise NotFoundError("no session matches; `memkit sessions` lists them")
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
    title = pad(plain(project + session.title), columns - len(session.date) - len(name) - 4)
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
