"""The command line: the list of commands, and how errors are reported.

A command's module is imported when the command is called. Nothing outside this package prints.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import click

import memkit
from memkit.errors import MemkitError, unwritable
from memkit.projects.trust import heed_user_only
from memkit.text import one_line

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

GARBAGE_OBJECTS = 50_000
"""New objects before Python looks for cycles. With its default of 700, that is 40 % of reading many years."""

_GROUPS = {
    "Remember": {
        "remember": ("remember", "Add a note to the memory."),
        "edit": ("remember", "Open a day of the memory in your editor."),
        "import": ("importing", "Import existing Claude Code sessions."),
        "summarize": ("summarize", "Summarize sessions with a model."),
        "compact": ("summarize", "Condense the memory into lasting facts."),
        "share": ("remember", "Share entries with everybody who has the repository."),
        "forget": ("forget", "Erase something permanently."),
        "on": ("projects", "Remember this project's sessions again."),
        "off": ("projects", "Stop remembering this project's sessions."),
    },
    "Find": {
        "search": ("search", "Search the memory."),
        "expand": ("expand", "Show the whole section around a result."),
        "cite": ("expand", "Show the proof of a summary bullet."),
        "transcript": ("expand", "Show the original exchange."),
        "resume": ("sessions", "Find a session, and resume it in Claude Code."),
        "why": ("why", "Show what was decided and changed about a file."),
        "fix": ("why", "Show what was run after an error when it did not come back."),
        "how": ("why", "Show the commands with a tool that worked here."),
        "topics": ("topics", "List what the project is about."),
    },
    "Look": {
        "sessions": ("sessions", "List sessions, newest first."),
        "timeline": ("timeline", "Show what a year, month, week, or day was about."),
        "show": ("show", "Show a day, a session, or a turn."),
        "status": ("status", "Show what is remembered, what is pending, and what failed."),
        "stats": ("stats", "Show statistics of the memory: days, turns, use, cost, size."),
        "cost": ("stats", "Show what model calls cost."),
        "export": ("backup", "Export the memory as Markdown, JSON lines, or HTML."),
    },
    "Maintain": {
        "doctor": ("doctor", "Find and fix problems."),
        "index": ("index", "Update the search index."),
        "watch": ("index", "Update the search index whenever a file changes."),
        "backup": ("backup", "Save memory, archive, and settings to one file."),
        "restore": ("backup", "Restore a backup."),
        "sync": ("sync", "Keep the memories on your machines the same."),
        "audit": ("forget", "Search the memory for secrets."),
        "service": ("service", "Control the background service."),
        "jobs": ("jobs", "List and run recurring jobs."),
        "logs": ("service", "Show memkit's logs."),
        "uninstall": ("uninstall", "Remove memkit from this machine."),
    },
    "Configure": {
        "setup": ("setup", "Check this machine, install the plugin, import old sessions."),
        "demo": ("demo", "Try memkit in a temporary directory."),
        "config": ("config", "Show and change settings."),
        "projects": ("projects", "List, link, rename, and merge projects."),
        "serve": ("serve", "Serve the memory to other programs (HTTP)."),
        "completion": ("config", "Print the completion script for your shell."),
    },
}
"""The commands by task: each with the module of this package that holds it, and its line of help."""

_INTERNAL = {
    "recall": ("recall", "Search and format the results for a model (used by the skill)."),
    "mcp": ("recall", "Serve the memory to other agents (started by MCP clients)."),
    "statusline": ("recall", "Print a line for Claude Code's status line."),
    "work": ("jobs", "Process pending events (used by hooks)."),
}
"""Commands that programs start. They work, and the manual has them, but help does not list them."""

_LISTED = {name: entry for group in _GROUPS.values() for name, entry in group.items()}
_RELATED = {"unshare": ("remember", "Take back what you shared.")}
"""Commands that the help of another one names. They work, and the manual has them."""

_COMMANDS = _LISTED | _RELATED | _INTERNAL


@contextmanager
def _reader_may_leave() -> Iterator[None]:
    """Exit with status 0 if the reader of the output leaves, as `head` does. Click alone exits with 1."""
    try:
        yield
    except BrokenPipeError:
        raise click.exceptions.Exit(0) from None


class _LazyGroup(click.Group):
    """Import a command's module only when that command runs; the group's help imports none."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Parse the arguments, which may print a help page."""
        with _reader_may_leave():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        with _reader_may_leave():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(f"memkit.cli.{_COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, _LISTED))
        for title, commands in _GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), line) for name, (_, line) in commands.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete command names without importing them; leave the rest to click."""
        from click.shell_completion import CompletionItem

        named = [
            CompletionItem(name, help=line)
            for name, (_, line) in _LISTED.items()
            if name.startswith(incomplete)
        ]
        return named + click.Command.shell_complete(self, ctx, incomplete)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches

            for close in get_close_matches(args[0], _COMMANDS, n=1):
                raise click.UsageError(f"{error.message} Did you mean {close}?", ctx) from error
            raise


@click.group(
    cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.option(
    "--set", "assignments", multiple=True, metavar="SECTION.NAME=VALUE",
    help="Change a setting for this command only.",
)
@click.version_option(memkit.__version__, message="%(prog)s %(version)s")
@click.pass_context
def cli(context: click.Context, assignments: tuple[str, ...]) -> None:
    """A memory for Claude Code: it keeps every session as Markdown, and finds it.

    \b
      memkit setup
      memkit search which port does the staging gateway use
    """
    if assignments:
        from memkit.settings.load import set_for_this_call

        context.with_resource(set_for_this_call(assignments))


def main() -> NoReturn:
    """Run the command line and exit: 0 success, 1 failure, 2 wrong usage, 130 interrupted."""
    os.umask(0o077)  # for the files that Chroma and others create
    gc.set_threshold(GARBAGE_OBJECTS)
    atexit.register(gc.freeze)  # or Python looks for cycles once more: 0.15 s if Chroma was used
    heed_user_only()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # file names can be any bytes
    try:
        # Click returns the status of its `Exit`.
        status: str | int | None = cli(prog_name="memkit", standalone_mode=False) or 0
    except click.Abort:
        _complain("interrupted")
        status = 130
    except click.ClickException as error:  # wrong usage
        error.show()
        status = error.exit_code
    except MemkitError as error:
        _complain(str(error))
        status = 1
    except BrokenPipeError:  # the reader of a completion is gone
        status = 0
    except SystemExit as error:  # such as by a completion
        status = error.code
    except Exception as error:  # noqa: BLE001 - reported in one line, and logged
        _complain(unexpected(error))
        status = 1
    _flush()
    sys.exit(status)


def _complain(message: str) -> None:
    from memkit.cli.output import plain

    click.echo(f"memkit: {plain(one_line(message))}", err=True)


def unexpected(error: Exception) -> str:
    """Log an unexpected error with its traceback, and return the line to show."""
    import logging

    from memkit.cli.log_file import log_to_file
    from memkit.paths import Home

    home = Home.from_environment()
    log_to_file(home)
    logging.getLogger("memkit").error("unexpected", exc_info=error)
    if isinstance(error, OSError) and error.errno is not None:
        return unwritable(error, home.root)
    return f"unexpected error ({type(error).__name__}: {error}); details are in {home.log_file}"


def _flush() -> None:
    """Flush stdout now: at interpreter exit, a closed pipe would print a traceback."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
