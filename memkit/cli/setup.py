"""`memkit setup`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from memkit.cli.context import Context, command
from memkit.cli.output import plain, plural
from memkit.errors import MemkitError, unwritable
from memkit.text import one_line

FREE_BYTES = 500_000_000
"""Enough for the model (0.1 GB), and the memory and index of some years."""


@dataclass(frozen=True, slots=True)
class SetupStep:
    """The result of a step: its state (`ok`, `skipped`, or `failed`), and a line for the user."""

    state: str
    said: str


@dataclass(frozen=True, slots=True)
class Answers:
    """The user's answers: yes to all questions (`yes`), no to the steps in `skip`; `may_ask` for the rest."""

    yes: bool
    skip: tuple[str, ...]
    may_ask: bool

    def agrees(self, step: str, question: str) -> SetupStep | None:
        """Return None if the user wants the step, else its result."""
        if step in self.skip:
            return SetupStep("skipped", f"--skip {step}")
        if self.yes:
            return None
        if not self.may_ask:
            return SetupStep("skipped", "no terminal to ask in; run `memkit setup --yes`")
        return None if click.confirm(question, default=True) else SetupStep("skipped", "as you said")


@command("setup")
@click.option("--yes", "-y", is_flag=True, help="Do everything without asking.")
@click.option(
    "--skip",
    multiple=True,
    type=click.Choice(["model", "plugin", "launcher", "import"]),
    help="Leave out a step.",
)
def setup_command(context: Context, yes: bool, skip: tuple[str, ...]) -> None:
    """Set up memkit: check this machine, install the plugin, import existing sessions.

    Asks before each change, and changes nothing that is already there, so you can run it again. Offers the
    command `memkit` for terminals: a script in ~/.local/bin that runs the plugin's memkit.
    With --json it never asks, and does only what --yes allows.

    \b
      memkit setup
      memkit setup --yes --skip import
    """
    answers = Answers(yes, skip, may_ask=not context.as_json and sys.stdin.isatty())
    steps: dict[str, Callable[[Context, Answers], SetupStep]] = {
        "python": _python,
        "disk": _disk,
        "model": _model,
        "claude": _claude,
        "plugin": _plugin,
        "launcher": _launcher,
        "import": _import,
    }
    found: dict[str, SetupStep] = {}
    for name, step in steps.items():
        try:
            found[name] = step(context, answers)
        except MemkitError as error:  # the other steps go on
            found[name] = SetupStep("failed", one_line(str(error)))
        if not context.as_json:
            click.echo(plain(f"{name:<10}{found[name].state:<9}{found[name].said}"))
    if context.as_json:
        context.print_json({"steps": {name: asdict(step) for name, step in found.items()}})
    failed = [name for name, step in found.items() if step.state == "failed"]
    if failed:
        raise MemkitError(
            f"not everything is ready ({', '.join(failed)}); run `memkit setup` again"
        )
    if not context.as_json:
        click.echo("Work in Claude Code as usual; `memkit status` shows what memkit remembers.")


def _python(context: Context, answers: Answers) -> SetupStep:
    # `bin/memkit` and the package stop with an older one.
    return SetupStep("ok", f"{sys.version.split()[0]} in {sys.prefix}")


def _disk(context: Context, answers: Answers) -> SetupStep:
    import shutil

    place = Path(context.home.root)
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    if free < FREE_BYTES:
        needed = f"memkit needs {FREE_BYTES / 1e9:.1f} GB"
        return SetupStep(
            "failed",
            f"{free / 1e9:.1f} GB free for {context.home.root}, {needed}: make room or set MEMKIT_HOME",
        )
    return SetupStep("ok", f"{free / 1e9:.1f} GB free for {context.home.root}")


def _model(context: Context, answers: Answers) -> SetupStep:
    from memkit.embedding.weights import MODEL, ensure_weights
    from memkit.errors import WeightsUnavailableError

    embedding = context.settings().embedding
    if embedding.provider != "local":
        return SetupStep("ok", f"embedding.provider is {embedding.provider}")
    try:
        ensure_weights(context.home, allow_download=False)
    except WeightsUnavailableError:
        if not embedding.download:
            raise
        refused = answers.agrees("model", "Download the model that search uses (91 MB, once)?")
        if refused:
            return SetupStep(refused.state, f"{refused.said}; without it, search uses words alone")
        ensure_weights(context.home, announce=context.say, retry=True)
    return SetupStep("ok", f"{MODEL} is here and has the right hash")


def _claude(context: Context, answers: Answers) -> SetupStep:
    from memkit.claude_code.installation import ClaudeCode

    claude = ClaudeCode.find()
    if claude is None:
        return SetupStep("failed", "there is no `claude` on PATH: install Claude Code")
    return SetupStep("ok", f"{claude.version()} at {claude.path}")


def _plugin(context: Context, answers: Answers) -> SetupStep:
    from memkit.claude_code.installation import PLUGIN, ClaudeCode, marketplace
    from memkit.ipc.launch import REPOSITORY

    claude = ClaudeCode.find()
    if claude is None:
        return SetupStep("skipped", "needs Claude Code")
    if claude.has_plugin():
        return SetupStep("ok", f"{PLUGIN} was installed already")
    source = marketplace(REPOSITORY)
    refused = answers.agrees("plugin", f"Install the plugin {PLUGIN} from {source}?")
    if refused:
        return refused
    claude.install_plugin(source)
    return SetupStep("ok", f"{PLUGIN} installed from {source}; sessions that start from now on use it")


def _launcher(context: Context, answers: Answers) -> SetupStep:
    from memkit import __version__
    from memkit.environment import (
        installed_launcher,
        launcher_path,
        launcher_text,
        write_launcher,
    )
    from memkit.ipc.launch import REPOSITORY

    if not Path(REPOSITORY, "bin", "memkit").exists():
        return SetupStep("ok", "this memkit is an installed package with its own command")
    if sys.platform == "win32":
        return SetupStep("skipped", "it is a shell script, which Windows cannot run")
    path = launcher_path()
    text = launcher_text(REPOSITORY, __version__)
    if not installed_launcher():
        if os.path.lexists(path):
            return SetupStep("skipped", f"{path} is not memkit's; it stays as it is")
        refused = answers.agrees("launcher", f"Write {path}, so that terminals have `memkit` too?")
        if refused:
            return refused
    try:
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            write_launcher(text)
    except OSError as error:
        raise MemkitError(f"cannot write {unwritable(error, str(path))}") from error
    if str(path.parent) in os.environ.get("PATH", "").split(os.pathsep):
        return SetupStep("ok", f"terminals run memkit with {path}")
    return SetupStep("ok", f"{path} runs memkit; add {path.parent} to your PATH")


def _import(context: Context, answers: Answers) -> SetupStep:
    from memkit.capture.sessions import Sessions
    from memkit.cli.importing import run_import, select

    selection = select(context, everything=True)
    known = Sessions(context.home)
    new = [source for source in selection.sources if not known.knows(source.path.stem)]
    if not new:
        return SetupStep("ok", "memkit knows every session")
    size = f"{plural(len(new), 'session')}, {sum(source.size for source in new) / 1e6:.1f} MB"
    refused = answers.agrees("import", f"Import the sessions that Claude Code has kept ({size})?")
    if refused:
        return SetupStep(refused.state, f"{refused.said}; later: `memkit import --all` ({size})")
    report, roots = run_import(context, selection)
    if report.problems:
        raise MemkitError("; ".join(report.problems[:3]))
    total = report.total
    return SetupStep(
        "ok",
        f"{plural(total.turns, 'turn')}, {total.written} new, in {plural(len(roots), 'project')}",
    )
