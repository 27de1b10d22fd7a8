"""The command line. Each command's module is imported when it is called, and prints; nothing else does."""

from __future__ import annotations

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
from memkit.hook.session_variables import heed_user_only

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_COMMANDS = {
    "setup": ("setup", "Check this machine, install the plugin, import old sessions."),
    "search": ("search", "Find what was said and done."),
    "expand": ("expand", "Show the whole section around a result."),
    "cite": ("cite", "Show the proof of a summary's bullet."),
    "transcript": ("transcript", "Show the original exchange."),
    "recall": ("recall", "Search, laid out for a model (the skill's first step)."),
    "index": ("index", "Bring the index into step with the markdown."),
    "import": ("importing", "Remember existing transcripts."),
    "remember": ("remember", "Write a note into the memory."),
    "edit": ("edit", "Open a day in your editor."),
    "forget": ("forget", "Erase something for good."),
    "summarize": ("summarize", "Have bullets written above the digests."),
    "compact": ("compact", "Condense the memory into lasting facts."),
    "cost": ("cost", "What model calls took."),
    "work": ("work", "Take waiting events into the memory and index them."),
    "watch": ("watch", "Keep the index in step while you edit."),
    "service": ("service", "The process that keeps index and model warm."),
    "jobs": ("jobs", "What memkit does by itself now and then."),
    "status": ("status", "What is remembered, what waits, what failed."),
    "stats": ("stats", "What the memory adds up to: days, turns, use, cost, room."),
    "doctor": ("doctor", "What is wrong, what it means, and what mends it."),
    "logs": ("logs", "What memkit's log says."),
    "projects": ("projects", "What projects are remembered, and which share a memory."),
    "config": ("configure", "Show and change settings."),
    "audit": ("audit", "Look for secrets in what is remembered."),
    "backup": ("backup", "Put memory, archive and settings into one file."),
    "restore": ("restore", "Bring back what a backup holds."),
    "export": ("export", "The memory as one file of markdown, JSON lines or HTML."),
    "uninstall": ("uninstall", "Remove memkit from this machine."),
    "on": ("switch", "Remember this project again."),
    "off": ("switch", "Stop remembering this project."),
    "demo": ("demo", "See the whole loop at work, in a throw-away home."),
    "completion": ("completion", "Have your shell complete commands and settings."),
}
"""Each command with the module of this package that holds it, and its line in the group's help."""

_ALIASES = {"grip": "cite"}
"""Former names of commands. They work, but help does not list them."""


@contextmanager
def _reader_may_leave() -> Iterator[None]:
    """End with status 0 if the reader of the output leaves, as `head` does; click itself would end with 1."""
    try:
        yield
    except BrokenPipeError:
        raise click.exceptions.Exit(0) from None


class _LazyGroup(click.Group):
    """Imports a command's module only when that command is wanted; help of the group wants none."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Parse the arguments, which may print a help page."""
        with _reader_may_leave():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        with _reader_may_leave():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        cmd_name = _ALIASES.get(cmd_name, cmd_name)
        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(f"memkit.cli.{_COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in _COMMANDS.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands that begin so, none of them imported; else what click completes."""
        from click.shell_completion import CompletionItem

        named = [
            CompletionItem(name, help=line)
            for name, (_, line) in _COMMANDS.items()
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
    cls=_LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(memkit.__version__, message="%(prog)s %(version)s")
def cli() -> None:
    """A memory for Claude Code: every session kept as readable markdown, and found again.

    \b
      memkit setup
      memkit search "which port does the staging gateway use"
      memkit search --help
    """


def main() -> NoReturn:
    """Run the command line and end the process: 0 done, 1 it failed, 2 wrong usage, 130 interrupted."""
    os.umask(0o077)  # Chroma and others make files with the mode that this leaves
    heed_user_only()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a name of a file can be any bytes
    try:
        # What a command asked for with click's `Exit` is returned.
        status: str | int | None = cli(prog_name="memkit", standalone_mode=False) or 0
    except click.Abort:
        _complain("interrupted")
        status = 130
    except click.ClickException as error:  # wrong usage: click's own words
        error.show()
        status = error.exit_code
    except MemkitError as error:
        _complain(str(error))
        status = 1
    except BrokenPipeError:  # the reader of a completion left
        status = 0
    except SystemExit as error:  # a completion has ended, or something else wants this status
        status = error.code
    except Exception as error:  # noqa: BLE001 - a person gets one line, the log the rest
        _complain(unexpected(error))
        status = 1
    _flush()
    sys.exit(status)


def _complain(message: str) -> None:
    from memkit.cli.context import plain

    click.echo(f"memkit: {plain(' '.join(message.split()))}", err=True)


def unexpected(error: Exception) -> str:
    """A line on an error that nobody foresaw; its traceback goes to the log."""
    import logging

    from memkit.cli.log import log_to_file
    from memkit.paths import Home

    home = Home.from_environment()
    log_to_file(home)
    logging.getLogger("memkit").error("unexpected", exc_info=error)
    if isinstance(error, OSError) and error.errno is not None:
        return unwritable(error, home.root)
    return f"unexpected error ({type(error).__name__}: {error}); details are in {home.log_file}"


def _flush() -> None:
    """Empty stdout now: at interpreter exit a closed pipe would print a traceback."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def json_line(value: Any) -> str:
    """`value` as one line of JSON, in characters that stdout has and that are safe on a terminal."""
    import json

    from memkit.cli.context import escaped

    is_unicode = str(sys.stdout.encoding).lower().startswith("utf")
    return escaped(json.dumps(value, ensure_ascii=not is_unicode))
