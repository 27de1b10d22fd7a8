"""Generate the parts of the manual that come from the code: commands, settings, and providers.

    python docs/reference.py [--check]

Each part goes between two markers of its page; the rest of the page stays. With `--check` nothing is
written, and the exit status is 1 if a page is out of date.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

DOCUMENTS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCUMENTS.parent))

from memkit.cli import cli  # noqa: E402
from memkit.embedding.remote import PROVIDERS  # noqa: E402
from memkit.llm import anthropic, claude_cli  # noqa: E402
from memkit.llm.chat_completions import SERVICES  # noqa: E402
from memkit.settings import EmbeddingSettings, load, validate  # noqa: E402

OF_ALL = {"project", "as_json"}
"""Options of every command, which the page lists once."""

USUAL = {
    "--since": r"(Only|From|Forget)\b.* this day on",
    "--until": r".* up to this day",
    "--all-projects": r".* of all projects\.$",
    "--dry-run": r".* would be",
    "--yes": r"Do not ask\.$",
}
"""Options that mean the same wherever their help matches. The page explains them once."""

TOLD = {
    "remember": "[Take notes](day-files.md#take-notes)",
    "edit": "[Edit](day-files.md#edit)",
    "index": "[Add other files](day-files.md#add-other-files)",
    "config": "[Settings](settings.md)",
    "export": "[Export](maintenance.md#export)",
    "completion": "[Completion](#completion)",
    "import": "[Import earlier sessions](index.md#3-import-earlier-sessions)",
    "summarize": "[Summaries and facts](summaries.md)",
    "compact": "[Lasting facts](summaries.md#lasting-facts)",
    "share": "[A team's memory](team.md)",
    "unshare": "[A team's memory](team.md#take-it-back)",
    "sync": "[Several machines](maintenance.md#several-machines)",
    "forget": "[Forgetting](privacy.md#forgetting)",
    "audit": "[Secrets](privacy.md#secrets)",
    "search": "[Search and recall](recall.md#in-a-terminal)",
    "timeline": "[Timeline](recall.md#timeline)",
    "topics": "[Topics](topics.md)",
    "doctor": "[Troubleshooting](troubleshooting.md)",
    "backup": "[Backup and restore](maintenance.md#backup-and-restore)",
    "restore": "[Backup and restore](maintenance.md#backup-and-restore)",
    "uninstall": "[Uninstall](maintenance.md#uninstall)",
    "service": "[The background service](recall.md#the-background-service)",
    "jobs": "[The background service](recall.md#the-background-service)",
    "setup": "[Quick start](index.md)",
    "projects": "[Projects](day-files.md#projects)",
    "serve": "[HTTP](integrations.md#http)",
    "mcp": "[MCP](integrations.md#other-agents-mcp)",
    "statusline": "[In Claude Code](recall.md#in-claude-code)",
}
"""Commands that another page explains: this one has only the first paragraph of their help."""


def commands() -> str:
    """Return every command: usage, help, and options."""
    root = click.Context(cli, info_name="memkit")
    return "\n".join(_of_group(cli, root))


def _of_group(group: click.Group, parent: click.Context) -> Iterator[str]:
    for name in group.list_commands(parent):
        command = group.get_command(parent, name)
        assert command is not None
        context = click.Context(command, info_name=name, parent=parent)
        yield from _of_command(command, context)
        if isinstance(command, click.Group):
            yield from _of_group(command, context)


def _of_command(command: click.Command, context: click.Context) -> Iterator[str]:
    arguments = [piece for piece in command.collect_usage_pieces(context) if piece != "[OPTIONS]"]
    yield f"{'#' * (1 + context.command_path.count(' '))} `{' '.join([context.command_path, *arguments])}`\n"
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    texts = [paragraph for paragraph in paragraphs if not paragraph.startswith("\b\n")]  # "\b": an example
    page = TOLD.get(command.name or "")
    for paragraph in texts[:1] if page else texts:
        yield _escaped(" ".join(paragraph.split())) + (f" See {page}.\n" if page else "\n")
    options = [
        parameter
        for parameter in command.params
        if isinstance(parameter, click.Option) and parameter.name not in OF_ALL and not parameter.hidden
    ]
    usual = [f"`{option.opts[0]}`" for option in options if _is_usual(option)]
    if shown := [_option(option, context) for option in options if not _is_usual(option)]:
        yield "\n".join(shown) + "\n"
    if usual:
        yield f"Also {', '.join(usual)}.\n"


def _is_usual(option: click.Option) -> bool:
    pattern = USUAL.get(option.opts[0])
    return pattern is not None and re.match(pattern, option.help or "") is not None


def _option(option: click.Option, context: click.Context) -> str:
    """Return a line of a list: names and value, help, default. `--help` also shows the bounds of a number."""
    record = option.get_help_record(context)
    assert record is not None
    names = record[0].replace("INTEGER RANGE", "N").replace("FLOAT RANGE", "N")
    text = option.help or ""
    if option.show_default and option.default is not None:
        text += f" Default: {option.default}."
    return f"- `{' '.join(names.split())}`: {_escaped(text)}"


def settings() -> str:
    """Return every setting with its default, purpose, and bounds: one list per section."""
    lines: list[str] = []
    defaults = load.Settings()
    for section, name in validate.every_key():
        made = getattr(defaults, section)
        if f"## {section}" not in lines:
            lines += ["", f"## {section}", "", _escaped(_first_line(type(made))), ""]
        lines.append(_setting((section, name), getattr(made, name)))
    return "\n".join(lines)


def _setting(key: load.Key, default: Any) -> str:
    star = r"\*" if load.is_harmless(key) else ""
    bounds = validate.allowed(key) if type(default) in (int, float) else ""
    bounds = bounds and f" ({re.sub('^a (whole )?number (from|of) ', '', bounds)})"
    purpose = _escaped(validate.describe(key)) + bounds
    return f"- `{'.'.join(key)} = {json.dumps(default, ensure_ascii=False)}`{star}: {purpose}"


def summarizers() -> str:
    """Return the providers of summaries, their requirements, and their models."""
    rows = [
        ("anthropic", "`ANTHROPIC_API_KEY`", anthropic.DEFAULT_MODEL),
        ("claude-cli", "your `claude`, logged in", claude_cli.DEFAULT_MODEL),
    ]
    rows += [(one.name, _variables(one.keys), one.model) for one in SERVICES.values()]
    lines = ["| `summarize.provider` | needs | usual model |", "|---|---|---|"]
    return "\n".join(
        lines + [_row((f"`{name}`", needs, f"`{model}`")) for name, needs, model in rows]
    )


def embedders() -> str:
    """Return the providers of vectors, their requirements, and their models."""
    lines = ["| `embedding.provider` | package | needs | usual model |", "|---|---|---|---|"]
    for name, one in PROVIDERS.items():
        model = EmbeddingSettings(provider=name).model
        lines.append(_row((f"`{name}`", f"`{one.package}`", _variables(one.keys), f"`{model}`")))
    return "\n".join(lines)


def _variables(names: Iterable[str]) -> str:
    return " or ".join(f"`{name}`" for name in names) or "a server"


def _row(cells: Iterable[str]) -> str:
    cells = list(cells)
    # A bar would end its cell, and Markdown renderers disagree on how to escape it.
    assert not any("|" in cell for cell in cells), cells
    return f"| {' | '.join(cells)} |"


def _first_line(made: type[msgspec.Struct]) -> str:
    return (made.__doc__ or "").partition("\n")[0]


def _escaped(text: str) -> str:
    """Return help as Markdown: text in backticks unchanged, the rest escaped."""
    parts = re.split("(`[^`]*`)", text)
    return "".join(
        part
        if part.startswith("`")
        else re.sub(r"([*\[])", r"\\\1", part.replace("&", "&amp;").replace("<", "&lt;"))
        for part in parts
    )


PARTS = {
    "commands": ("commands.md", commands),
    "settings": ("settings.md", settings),
    "summarizers": ("models.md", summarizers),
    "embedders": ("models.md", embedders),
}
"""Each part with its page and the function that makes it."""


def with_part(text: str, name: str, made: str, script: str = "docs/reference.py") -> str:
    """Return a page's text with `made` between the markers of a part. Raise `ValueError` if they are
    missing.
    """
    begin, end = f"<!-- begin {name}: python {script} -->", f"<!-- end {name} -->"
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"expected the lines {begin} and {end}")
    return f"{before}{begin}\n\n{made.strip()}\n\n{end}{after}"


def main(check: bool) -> str | None:
    """Write the pages, or report parts that are out of date."""
    stale = []
    for name, (page, make) in PARTS.items():
        path = DOCUMENTS / page
        old = path.read_text(encoding="utf-8")
        new = with_part(old, name, make())
        if new != old:
            stale.append(f"{name} in docs/{page}")
            if not check:
                path.write_text(new, encoding="utf-8")
    if stale and check:
        return f"stale: {', '.join(stale)}; `python docs/reference.py` rebuilds them"
    return None


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(f"{Path(__file__).name}: takes nothing but --check")
    sys.exit(main(check=bool(sys.argv[1:])))
