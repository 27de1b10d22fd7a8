"""`memkit setup`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from memkit.cli.context import Context, command, counted, plain
from memkit.errors import MemkitError

FREE_BYTES = 500_000_000
"""For the model (0.1 GB) and the memory and index of some years."""


@dataclass(frozen=True, slots=True)
class SetupStep:
    """How a step ended: `ok`, `skipped` or `failed`, and what there is to say."""

    state: str
    said: str


@dataclass(frozen=True, slots=True)
class Answers:
    """What the person wants: `yes` to every question, or to none of those in `skip`; `may_ask` the rest."""

    yes: bool
    skip: tuple[str, ...]
    may_ask: bool

    def agrees(self, step: str, question: str) -> SetupStep | None:
        """None if the step is to be done; else why it is not."""
        if step in self.skip:
            return SetupStep("skipped", f"--skip {step}")
        if self.yes:
            return None
        if not self.may_ask:
            return SetupStep("skipped", "nobody to ask; `memkit setup --yes` does it")
        return None if click.confirm(question, default=True) else SetupStep("skipped", "as you said")


@command("setup")
@click.option("--yes", "-y", is_flag=True, help="Ask nothing, do it all.")
@click.option(
    "--skip",
    multiple=True,
    type=click.Choice(["model", "plugin", "import"]),
    help="Leave a step out.",
)
def setup_command(context: Context, yes: bool, skip: tuple[str, ...]) -> None:
    """Make memkit ready: check this machine, install the plugin, import existing sessions.

    Asks before each thing it does; what is there already it leaves alone, so it can be run again.
    With --json it asks nothing, and does only what --yes allows.

    \b
      memkit setup
      memkit setup --yes --skip import
    """
    answers = Answers(yes, skip, may_ask=not context.as_json and sys.stdin.isatty())
    steps: dict[str, Callable[[Context, Answers], SetupStep]] = {
        "python": _python,
        "disk": _disk,
        "model": _model,
        "client": _client,
        "plugin": _plugin,
        "import": _import,
    }
    found: dict[str, SetupStep] = {}
    for name, step in steps.items():
        try:
            found[name] = step(context, answers)
        except MemkitError as error:  # what fails is said, and keeps nothing else from being done
            found[name] = SetupStep("failed", " ".join(str(error).split()))
        if not context.as_json:
            click.echo(plain(f"{name:<8}{found[name].state:<9}{found[name].said}"))
    if context.as_json:
        context.print_json({"steps": {name: asdict(step) for name, step in found.items()}})
    failed = [name for name, step in found.items() if step.state == "failed"]
    if failed:
        raise MemkitError(
            f"not everything is ready ({', '.join(failed)}); run `memkit setup` again"
        )
    if not context.as_json:
        click.echo("Work in Claude Code as usual; `memkit status` tells what is remembered.")


def _python(context: Context, answers: Answers) -> SetupStep:
    # Older ones never get here: `bin/memkit` and the package refuse them.
    return SetupStep("ok", f"{sys.version.split()[0]} in {sys.prefix}")


def _disk(context: Context, answers: Answers) -> SetupStep:
    import shutil

    place = Path(context.home.root)
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    if free < FREE_BYTES:
        needed = f"{FREE_BYTES / 1e9:.1f} GB are wanted"
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
        refused = answers.agrees("model", "Fetch the model that search uses (91 MB, once)?")
        if refused:
            return SetupStep(refused.state, f"{refused.said}; until it is there search goes by words")
        ensure_weights(context.home, announce=context.say, retry=True)
    return SetupStep("ok", f"{MODEL} is here, its hash is right")


def _client(context: Context, answers: Answers) -> SetupStep:
    from memkit.environment.plugin import Client

    client = Client.find()
    if client is None:
        return SetupStep("failed", "there is no `claude` on PATH: install Claude Code")
    return SetupStep("ok", f"{client.version()} at {client.path}")


def _plugin(context: Context, answers: Answers) -> SetupStep:
    from memkit.environment.plugin import PLUGIN, Client, marketplace
    from memkit.ipc.launch import REPOSITORY

    client = Client.find()
    if client is None:
        return SetupStep("skipped", "needs Claude Code")
    if client.has_plugin():
        return SetupStep("ok", f"{PLUGIN} was installed already")
    source = marketplace(REPOSITORY)
    refused = answers.agrees("plugin", f"Install the plugin {PLUGIN} from {source}?")
    if refused:
        return refused
    client.install_plugin(source)
    return SetupStep("ok", f"{PLUGIN} installed from {source}; sessions that start from now on have it")


def _import(context: Context, answers: Answers) -> SetupStep:
    from memkit.capture.sessions import Sessions
    from memkit.cli.importing import run_import, select

    selection = select(context, everything=True)
    known = Sessions(context.home)
    new = [source for source in selection.sources if not known.knows(source.path.stem)]
    if not new:
        return SetupStep("ok", "there are no sessions that memkit does not know")
    size = f"{counted(len(new), 'session')}, {sum(source.size for source in new) / 1e6:.1f} MB"
    refused = answers.agrees("import", f"Import what Claude Code has kept ({size})?")
    if refused:
        return SetupStep(refused.state, f"{refused.said}; later: `memkit import --all` ({size})")
    report, roots = run_import(context, selection)
    if report.problems:
        raise MemkitError("; ".join(report.problems[:3]))
    total = report.total
    return SetupStep(
        "ok",
        f"{counted(total.turns, 'turn')}, {total.written} new, in {counted(len(roots), 'project')}",
    )
