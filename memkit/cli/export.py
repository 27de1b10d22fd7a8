"""`memkit export`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memkit.cli.context import Context, command, iso_day_named
from memkit.cli.output import escaped, plain, plain_file
from memkit.errors import MemkitError
from memkit.text import plural

if TYPE_CHECKING:
    from memkit.export import Days


@command("export")
@click.option(
    "--format", "kind", type=click.Choice(["md", "jsonl", "html"]), default="md", show_default=True,
    help="Markdown, one JSON object per entry, or one self-contained HTML page.",
)  # fmt: skip
@click.option("--since", metavar="DAY", help="Only from this day on.")
@click.option("--until", metavar="DAY", help="Only up to this day, inclusive.")
@click.option(
    "--output", metavar="FILE", type=click.Path(dir_okay=False), help="Write to FILE (default: stdout)."
)
@click.option("--with-anchors", is_flag=True, help="Keep memkit's comments in the Markdown.")
def export_command(
    context: Context,
    kind: str,
    since: str | None,
    until: str | None,
    output: str | None,
    with_anchors: bool,
) -> None:
    """Write the days of this project's memory as one file.

    \b
      memkit export --format html --output memory.html
      memkit export --since "last monday"
    """
    from memkit.export import Days

    if with_anchors and kind != "md":
        raise click.UsageError("--with-anchors is for --format md")
    if context.as_json and output is None:
        raise click.UsageError("--json needs --output FILE; --format jsonl prints JSON")
    days = Days(context.project, iso_day_named(since), iso_day_named(until))
    if not days.dates:
        raise MemkitError(f"{context.project.root} has no memory of that time; nothing was exported")
    pieces = _pieces(days, kind, with_anchors)
    if output is None:
        for piece in pieces:
            click.echo(escaped(piece) if kind == "jsonl" else plain(piece), nl=False)
        return
    path = Path(output).absolute()
    _write(path, map(escaped if kind == "jsonl" else plain_file, pieces))
    count = len(days.dates)
    context.report({"file": str(path), "days": count}, f"{plural(count, 'day')} in {path}.")


def _pieces(days: Days, kind: str, with_anchors: bool) -> Iterator[str]:
    if kind == "html":
        from memkit.export import as_page

        return as_page(days)
    from memkit.export import as_json_lines, as_markdown

    return as_json_lines(days) if kind == "jsonl" else as_markdown(days, with_anchors=with_anchors)


def _write(path: Path, pieces: Iterator[str]) -> None:
    from memkit.files import open_replacement

    try:
        with open_replacement(str(path)) as file:
            for piece in pieces:
                file.write(piece.encode("utf-8"))
    except OSError as error:
        raise MemkitError(f"cannot write {path}: {error.strerror or error}") from error
