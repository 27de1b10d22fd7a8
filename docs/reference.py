"""The reference pages of the manual, made from the code: all commands, and all settings.

    python docs/reference.py [--check]

Writes `docs/commands.md` and `docs/settings.md` between their markers, and leaves what stands around
them alone. With `--check` it writes nothing, and exits 1 if a page is not what it would write.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

DOCUMENTS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCUMENTS.parent))

from memkit import config  # noqa: E402
from memkit.cli import cli  # noqa: E402

BEGIN, END = "<!-- begin generated: python docs/reference.py -->", "<!-- end generated -->"

OF_ALL = {"project", "as_json"}
"""The options of every command, which the page says once."""


def commands() -> str:
    """Every command: its usage, its help, its options."""
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
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"{'#' * (1 + context.command_path.count(' '))} {context.command_path}\n"
    yield f"    {context.command_path} {usage}\n"
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        yield _paragraph(paragraph) + "\n"
    options = [
        parameter.get_help_record(context)
        for parameter in command.params
        if isinstance(parameter, click.Option) and parameter.name not in OF_ALL
    ]
    shown = [f"- `{' '.join(names.split())}` {_escaped(text)}" for names, text in filter(None, options)]
    if shown:
        yield "\n".join(shown) + "\n"


def _paragraph(text: str) -> str:
    """A paragraph of help as markdown; what click is told not to wrap is an example."""
    if text.startswith("\b\n"):
        return "\n".join(f"    {line.strip()}" for line in text.splitlines()[1:])
    return _escaped(" ".join(text.split()))


def settings() -> str:
    """Every setting: its default, what it is for, the bounds of a number; a table for each section."""
    lines: list[str] = []
    defaults = config.Settings()
    for section, name in config.every_key():
        made = getattr(defaults, section)
        if f"## {section}" not in lines:
            lines += ["", f"## {section}", "", _escaped(_first_line(type(made))), ""]
            lines += ["| setting | default | what it is for |", "|---|---|---|"]
        lines.append(_row((section, name), getattr(made, name)))
    return "\n".join(lines[1:])


def _row(key: config.Key, default: Any) -> str:
    name = f"`{'.'.join(key)}`" + (r"\*" if config.is_harmless(key) else "")
    shown = "empty" if default == "" else f"`{json.dumps(default).strip(chr(34))}`"
    bounds = f" ({config.allowed(key)})" if type(default) in (int, float) else ""
    cells = name, shown, _escaped(config.describe(key)) + bounds
    # A bar would end its cell, and no escape of it is read alike by all that show markdown.
    assert not any("|" in cell for cell in cells), cells
    return f"| {' | '.join(cells)} |"


def _first_line(made: type[msgspec.Struct]) -> str:
    return (made.__doc__ or "").partition("\n")[0]


def _escaped(text: str) -> str:
    """Help as markdown: what is between backticks as it is, the rest without a meaning of its own."""
    parts = re.split("(`[^`]*`)", text)
    return "".join(
        part if part.startswith("`") else re.sub(r"([*<\[])", r"\\\1", part) for part in parts
    )


PAGES = {"commands.md": commands, "settings.md": settings}


def fresh(page: Path, generated: str) -> str:
    """The page with `generated` between its markers. Raises `ValueError` if it has not one pair."""
    text = page.read_text(encoding="utf-8")
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise ValueError(f"{page}: expected one line {BEGIN} and one {END}")
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n\n{generated.strip()}\n\n{END}{rest.split(END)[1]}"


def main(check: bool) -> str | None:
    """Write the pages; or, to check them, say which are stale."""
    stale = []
    for name, make in PAGES.items():
        page = DOCUMENTS / name
        text = fresh(page, make())
        if text != page.read_text(encoding="utf-8"):
            stale.append(name)
            if not check:
                page.write_text(text, encoding="utf-8")
    if stale and check:
        return f"stale: {', '.join(stale)}; `python docs/reference.py` makes them anew"
    return None


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(f"{Path(__file__).name}: takes nothing but --check")
    sys.exit(main(check=bool(sys.argv[1:])))
