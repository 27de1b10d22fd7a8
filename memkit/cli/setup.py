"""`memkit setup`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import wrap

import click

from memkit import __version__, environment
from memkit.agents.claude_code.installation import PLUGIN, ClaudeCode, marketplace
from memkit.cli.context import Context, command
from memkit.cli.output import confirm, echo, format_size, plain
from memkit.cli.screen import width
from memkit.cli.status import agents_line, captured_agents
from memkit.environment import installed_launcher, launcher_path, launcher_text, write_launcher
from memkit.environment.extras import EXTRAS
from memkit.errors import MemkitError, unwritable
from memkit.ipc.launch import REPOSITORY
from memkit.mcp import clients
from memkit.settings import load
from memkit.text import one_line, plural

FREE_BYTES = 500_000_000
"""Enough for the model (0.1 GB), and the memory and index of some years."""


class _Skipped(Exception):
    """A step that is left out, with the reason."""


class _Questions:
    """Asks before a step: `--yes` agrees to all, `--skip` refuses some. Without a terminal it never asks."""

    def __init__(self, yes: bool, skip: tuple[str, ...], may_ask: bool) -> None:
        self._yes = yes
        self._skip = skip
        self._may_ask = may_ask

    def ask(self, step: str, question: str, otherwise: str = "") -> None:
        """Return if the user wants the step, else raise `_Skipped` with the reason and then `otherwise`."""
        if step in self._skip:
            raise _Skipped(f"--skip {step}{otherwise}")
        if not self._yes and not self._may_ask:
            advice = "run it, or agree with --yes, in a terminal of your own"
            raise _Skipped(f"no terminal to ask on; {advice}{otherwise}")
        if not self._yes and not click.confirm(plain(question), default=True):
            raise _Skipped(f"you declined{otherwise}")

    def decide(self, step: str, question: str) -> bool | None:
        """Return the user's own answer, or None if there was no question: `--yes` is no answer."""
        if self._yes or step in self._skip or not self._may_ask:
            return None
        return click.confirm(plain(question), default=True)


@command("setup")
@click.option("--yes", "-y", is_flag=True, help="Do everything without asking.")
@click.option(
    "--skip",
    multiple=True,
    type=click.Choice(["model", "plugin", "launcher", "summaries", "agents", "import"]),
    help="Leave out a step.",
)
@click.option(
    "--mcp", metavar="CLIENT", type=click.Choice(clients.NAMES),
    help=f"Only connect another agent by MCP: {', '.join(clients.NAMES)}.",
)
@click.option("--agent", type=click.Choice(["codex"]), help="Only connect an agent by its own hooks: codex.")
@click.option(
    "--with", "extras", metavar="EXTRA", multiple=True, type=click.Choice(list(EXTRAS)),
    help=f"Only add packages that memkit can do without: {', '.join(EXTRAS)}.",
)
def setup_command(
    context: Context, yes: bool, skip: tuple[str, ...], mcp: str | None, agent: str | None,
    extras: tuple[str, ...],
) -> None:
    """Set up memkit: check this machine, install the plugin, import existing sessions.

    Asks before each change, and changes nothing that is already there, so you can run it again. Offers the
    command `memkit` for terminals: a script in ~/.local/bin that runs the plugin's memkit.
    With --json, or where there is no terminal (as after `!` in Claude Code), it cannot ask, and skips each
    change unless you pass --yes. Whether a model may write summaries is decided by an answer only.
    What --with adds is added again after an update of memkit.

    \b
      memkit setup
      memkit setup --skip import
      memkit setup --agent codex
      memkit setup --mcp cursor
      memkit setup --with topics --with google
    """
    if sum(map(bool, (mcp, agent, extras))) > 1:
        raise click.UsageError("give one of --mcp, --agent, and --with")
    if extras:
        _add(context, extras, yes)
        return
    if mcp:
        _connect(context, mcp, yes)
        return
    if agent:
        _hook(context, yes)
        return
    questions = _Questions(yes, skip, may_ask=not context.as_json and sys.stdin.isatty())
    steps: dict[str, Callable[[Context, _Questions], str]] = {
        "python": lambda *_: f"{sys.version.split()[0]} in {sys.prefix}",  # an older one never gets here
        "disk": _disk,
        "model": _model,
        "claude": _claude,
        "plugin": _plugin,
        "launcher": _launcher,
        "summaries": _summaries,
        "agents": _agents,
        "import": _import,
    }
    found: dict[str, dict[str, str]] = {}
    for name, step in steps.items():
        try:
            state, said = "ok", step(context, questions)
        except _Skipped as reason:
            state, said = "skipped", str(reason)
        except MemkitError as error:  # the other steps go on
            state, said = "failed", one_line(str(error))
        found[name] = {"state": state, "said": said}
        if not context.as_json:
            text = wrap(said, width() - 20, break_long_words=False, break_on_hyphens=False)
            echo(f"{name:<10}{state:<9}" + f"\n{'':<19}".join(text))
    if context.as_json:
        context.print_json({"steps": found})
    failed = ", ".join(name for name, one in found.items() if one["state"] == "failed")
    if failed:
        raise MemkitError(f"these steps failed: {failed}; fix what they report, and run `memkit setup` again")
    if not context.as_json:
        echo("Work in Claude Code as usual; `memkit status` shows what memkit remembers.")
        echo("`memkit statusline --help` shows how to add memkit to Claude Code's status line.")


def _add(context: Context, extras: tuple[str, ...], yes: bool) -> None:
    from memkit.environment.build import add_extras

    wanted = [extra for extra in EXTRAS if extra in extras]
    requirements = [one for extra in wanted for one in EXTRAS[extra]]
    if not environment.is_own(context.home.root):
        command = environment.install_command(*requirements)
        raise MemkitError(f"memkit does not manage its Python environment {sys.prefix}; run `{command}`")
    if not yes and not sys.stdin.isatty():
        raise MemkitError("no terminal to ask on; run it, or agree with --yes, in a terminal of your own")
    size = ", with torch, gigabytes on Linux" if "sentence-transformers" in wanted else ""
    confirm(f"Install {', '.join(requirements)}{size} into {sys.prefix}?", yes)
    add_extras(context.home.root, wanted)
    context.report({"installed": wanted}, f"Installed {', '.join(wanted)}.")


def _connect(context: Context, name: str, yes: bool) -> None:
    from memkit.mcp import server
    from memkit.mcp.handshake import NAME

    server.check_package()
    claude = ClaudeCode.find() if name == "claude-code" else None
    client = clients.CLIENTS.get(name, clients.CLAUDE_CODE)
    entry = clients.entry_of(client, context.project.root)
    path = str(client.path())
    if context.as_json:
        context.print_json({"client": name, "path": path, "table": client.table, "entry": entry})
        return
    echo(f"{client.title}: {path}")
    echo(clients.shown(client, entry))
    echo()
    if not _may_write(yes):
        return
    if name == "claude-code" and claude is None:
        raise MemkitError("there is no `claude` on PATH to write this entry; install Claude Code")
    confirm(f"Add it to {client.title}?", yes)
    if claude is not None:
        claude.add_server(NAME, entry)
        echo("Added; new sessions have it.")
    elif clients.write_entry(client, entry):
        echo(f"Written; restart {client.title}.")
    else:
        echo("It is already there.")


def _may_write(yes: bool) -> bool:
    if not yes and not sys.stdin.isatty():
        echo("Not written: there is no terminal to ask on. Add it, or use --yes, in a terminal of your own.")
        return False
    return True


def _hook(context: Context, yes: bool) -> None:
    """Connect Codex by its hooks, with a skill that tells how to search."""
    from memkit.agents.codex import installation as codex

    if sys.platform == "win32":
        raise MemkitError("Codex's hooks run in a POSIX shell; on Windows, use `memkit setup --mcp codex`")
    own = clients.own_command()
    hooks = {"hooks": {event: [group] for event, group in codex.hooks(own).items()}}
    files = {str(codex.hooks_file()): hooks, str(codex.skill_file()): codex.skill(own)}
    if context.as_json:
        context.print_json({"files": files})
        return
    for path, content in files.items():
        echo(f"Codex: {path}")
        echo(content if isinstance(content, str) else json.dumps(content, indent=2))
        echo()
    if not _may_write(yes):
        return
    confirm("Write them for Codex?", yes)
    for edited in codex.install(own):
        echo(f"{edited} has your edits of what memkit wrote, so that stays.")
    echo("Written. Codex asks once whether you trust the hooks: review them there with /hooks.")


def _disk(context: Context, questions: _Questions) -> str:
    import shutil

    place = Path(context.home.root)
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    found = f"{format_size(free)} free for {context.home.root}"
    if free < FREE_BYTES:
        needed = format_size(FREE_BYTES)
        raise MemkitError(
            f"{found}, but memkit needs {needed}; free some space, or set MEMKIT_HOME to a directory on "
            "another disk"
        )
    return found


def _model(context: Context, questions: _Questions) -> str:
    from memkit.embedding.weights import MODEL, ensure_weights
    from memkit.errors import WeightsUnavailableError

    embedding = context.settings().embedding
    if embedding.provider != "local":
        return f"not needed, because embedding.provider is {embedding.provider}"
    try:
        ensure_weights(context.home, allow_download=False)
    except WeightsUnavailableError:
        if not embedding.download:
            raise
        question = "Download the model that search uses (91 MB, once)?"
        questions.ask("model", question, "; until then, search uses words alone")
        ensure_weights(context.home, announce=context.say, retry=True)
    return f"{MODEL} is downloaded and has the right hash"


def _claude(context: Context, questions: _Questions) -> str:
    claude = ClaudeCode.find()
    if claude is None:
        raise MemkitError("there is no `claude` on PATH; install Claude Code")
    return f"{claude.version()} at {claude.path}"


def _plugin(context: Context, questions: _Questions) -> str:
    claude = ClaudeCode.find()
    if claude is None:
        raise _Skipped("needs Claude Code")
    if claude.has_plugin():
        return f"{PLUGIN} is already installed"
    source = marketplace(REPOSITORY)
    questions.ask("plugin", f"Install the plugin {PLUGIN} from {source}?")
    claude.install_plugin(source)
    return f"installed {PLUGIN} from {source}; new sessions use it"


def _launcher(context: Context, questions: _Questions) -> str:
    if not Path(REPOSITORY, "bin", "memkit").exists():
        return "this memkit is an installed package with its own command"
    if sys.platform == "win32":
        raise _Skipped("the launcher is a shell script, which Windows cannot run")
    path = launcher_path()
    text = launcher_text(REPOSITORY, __version__)
    if not installed_launcher():
        if os.path.lexists(path):
            raise _Skipped(f"{path} exists and is not memkit's, so it stays as it is")
        questions.ask("launcher", f"Write {path}, so that you can run `memkit` in a terminal?")
    try:
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            write_launcher(text)
    except OSError as error:
        raise MemkitError(f"cannot write {unwritable(error, str(path))}") from error
    if str(path.parent) in os.environ.get("PATH", "").split(os.pathsep):
        return f"a terminal finds memkit at {path}"
    return f"{path} runs memkit; add {path.parent} to your PATH"


def _summaries(context: Context, questions: _Questions) -> str:
    from memkit.hook.notices import budget_words

    loaded = load.load(context.home)
    chosen = loaded.settings.summarize
    if chosen.why_off:
        return f"off, because {chosen.why_off}" + ("; extracts need no model" * chosen.wants_extracts)
    if load.PROVIDER in loaded.origins:
        return f"by {chosen.provider}, as you set it"
    most = budget_words(chosen.daily_tokens)
    question = f"Let your own Claude Code summarize new sessions into the memory, with {most}?"
    answer = questions.decide("summaries", question)
    if answer is None and load.may_summarize(context.home, loaded.settings):
        return f"on, with {most}, {chosen.why_on}"
    if answer is None:
        return f"they start after the next session in a terminal has said so, with {most}"
    load.save(context.home, load.PROVIDER, "auto" if answer else "none")
    load.publish_hook_settings(context.home)
    return f"on, with {most}, {chosen.why_on}" if answer else "off; you can turn them on in `memkit setup`"


def _agents(context: Context, questions: _Questions) -> str:
    from memkit.cli.importing import ask_to_capture

    ask_to_capture(context, lambda question: questions.decide("agents", question))
    return agents_line(captured_agents(context.settings()))


def _import(context: Context, questions: _Questions) -> str:
    from memkit.cli.importing import found_sessions, new_sessions, run_import, select

    selection = select(context, everything=True)
    new = new_sessions(context, selection)
    if not new:
        return "no new sessions"
    size = f"{plural(len(new), 'session')}, {format_size(sum(source.size for source in new))}"
    for line in found_sessions(new):
        context.say(line)
    question = f"Import these sessions ({size})?"
    questions.ask("import", question, f"; `memkit import --all` does it later ({size})")
    report, roots = run_import(context, selection)
    if report.problems:
        raise MemkitError("; ".join(report.problems[:3]))
    total = report.total
    return f"{plural(total.turns, 'turn')}, {total.written} new, in {plural(len(roots), 'project')}"
