"""`memkit backup`, `memkit restore`, and `memkit export`."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memkit.cli.context import Context, command, iso_day_named
from memkit.cli.output import confirm, echo, escaped, format_size, plain, plain_file, short_path
from memkit.errors import MemkitError, NotFoundError
from memkit.export import Days, as_json_lines, as_markdown, as_page
from memkit.text import plural

if TYPE_CHECKING:
    from memkit.maintenance.restore import Restore, RestoreReport

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
    context: Context, kind: str, since: str | None, until: str | None, output: str | None, with_anchors: bool
) -> None:
    """Write the days of this project's memory as one file.

    \b
      memkit export --format html --output memory.html
      memkit export --since "last monday"
    """
    if with_anchors and kind != "md":
        raise click.UsageError("--with-anchors is for --format md")
    if context.as_json and output is None:
        raise click.UsageError("--json needs --output FILE; --format jsonl prints JSON")
    days = Days(context.project, iso_day_named(since), iso_day_named(until))
    if not days.dates:
        raise MemkitError(f"{context.project.root} has no memory of that time; nothing was exported")
    if kind == "html":
        pieces = as_page(days)
    else:
        pieces = as_json_lines(days) if kind == "jsonl" else as_markdown(days, with_anchors=with_anchors)
    if output is None:
        for piece in pieces:
            click.echo(escaped(piece) if kind == "jsonl" else plain(piece), nl=False)
        return
    path = Path(output).absolute()
    _write(path, map(escaped if kind == "jsonl" else plain_file, pieces))
    count = len(days.dates)
    context.report({"file": str(path), "days": count}, f"{plural(count, 'day')} in {path}.")


def _write(path: Path, pieces: Iterator[str]) -> None:
    from memkit.files import open_replacement

    try:
        with open_replacement(str(path)) as file:
            for piece in pieces:
                file.write(piece.encode("utf-8"))
    except OSError as error:
        raise MemkitError(f"cannot write {path}: {error.strerror or error}") from error


@command("backup")
@click.argument("file", type=click.Path(dir_okay=False), metavar="FILE.tar.zst")
@click.option("--yes", is_flag=True, help="Replace FILE if it exists.")
def backup_command(context: Context, file: str, yes: bool) -> None:
    """Write everything that memkit cannot rebuild to one file that only you can read.

    That is the memories of all projects and your own, the archive, the settings with your keys, the ledger,
    the record of what was forgotten, and the session states. The index and other derived files are not in it.

    \b
      memkit backup ~/memkit.tar.zst
    """
    from memkit.capture.project_list import projects_with_memory
    from memkit.maintenance.backup import back_up

    context.stay_in_project(leaves=True)
    path = Path(file).absolute()
    if path.exists() and not yes:
        raise MemkitError(f"{path} exists; name another file, or use --yes in a terminal of your own")
    with context.memory().capture_lock():
        projects = projects_with_memory(context.home, [context.project])
        with context.progress("writing the backup", is_counted=False):
            report = back_up(context.home, projects, path)
    context.report(
        {"file": str(path), **dataclasses.asdict(report)},
        *(f"The memory of {short_path(root)}" for root in report.projects),
        f"{plural(report.files, 'file')} in {short_path(str(path))} ({format_size(report.size)}).",
    )


@command("restore")
@click.argument("file", type=click.Path(), metavar="FILE.tar.zst")
@click.option("--force", is_flag=True, help="Also replace files that differ; the archive keeps a copy.")
@click.option("--move", nargs=2, multiple=True, metavar="OLD NEW", help="The project at OLD is at NEW now.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def restore_command(
    context: Context, file: str, force: bool, move: tuple[tuple[str, str], ...], yes: bool
) -> None:
    """Restore a backup, after checking all of it.

    Missing files are written. An existing file that differs stays, unless you give --force. What was
    forgotten, before the backup or since, stays forgotten. Settings that change what is kept, where it goes,
    or what is spent are shown and confirmed separately; --yes skips them.

    The memory of a project whose directory is gone goes to `MEMKIT_HOME/projects`, or to --project PATH if
    it is the only one, or to where --move says. The next search or `memkit index` updates the index.

    \b
      memkit restore ~/memkit.tar.zst
      memkit restore ~/memkit.tar.zst --move /old/shop ~/shop
    """
    from memkit.llm.calls import exclusive_lock
    from memkit.maintenance.restore import open_backup

    context.stay_in_project(leaves=True)
    memory = context.memory()
    with exclusive_lock(context.home, memory.wait_seconds, memory.announce), ExitStack() as unpacked:
        with context.progress("checking the backup", is_counted=False):
            found = unpacked.enter_context(open_backup(context.home, Path(file)))
        moved = _moved(context, [one.root for one in found.header.projects], found.gone, move)
        found.move(moved)
        if not context.as_json:
            _show(found, force)
        confirm("Restore?", yes)
        with_settings = _restore_settings(context, found, yes)
        with context.progress("restoring", is_counted=False):
            report = found.apply(
                force=force, with_settings=with_settings,
                settings_of=context.settings_of, announce=context.say,
            )  # fmt: skip
    _print(context, report)
    context.check(
        report.problems,
        "some forgotten text is back; fix these problems; then erase it with `memkit forget`"
        " in a terminal of your own",
    )


def _restore_settings(context: Context, found: Restore, yes: bool) -> bool:
    if not found.settings or yes:
        return False
    context.say("The backup's settings change what is kept, where it goes, or what is spent:")
    for line in found.settings:
        context.say(f"  {line}")
    return click.confirm("Restore these settings too?", default=False, err=True)


def _moved(
    context: Context, roots: Sequence[str], gone: Sequence[str], move: Sequence[tuple[str, str]]
) -> dict[str, str]:
    moved = dict(move)
    for old, new in moved.items():
        if old not in roots:
            raise NotFoundError(f"the backup holds no project at {old}; it holds {', '.join(roots)}")
        if not Path(new).is_dir():
            raise NotFoundError(f"no such directory: {new}")
    if context.names_project:
        rest = [root for root in gone if root not in moved]
        if len(rest) != 1:
            which = ", ".join(rest) or "none"
            raise MemkitError(
                f"--project takes the one project whose directory is gone; gone are: {which}; "
                "use `--move OLD NEW` for each"
            )
        moved[rest[0]] = context.project.root
    return moved


def _show(found: Restore, force: bool) -> None:
    for named, project in zip(found.header.projects, found.projects, strict=True):
        to = "" if named.root == project.root else f" to {short_path(project.root)}"
        echo(f"The memory of {short_path(named.root)}{to}")
    for path in found.added_paths:
        echo(f"Markdown that would be indexed as well: {path}")
    count = Counter(step.state for step in found.steps)
    what = "would be replaced, with a copy in the archive" if force else "stay as they are"
    echo(
        f"{plural(count['new'], 'file')} to write; {count['same']} exist; "
        f"{count['differs']} differ and {what}."
    )


def _print(context: Context, report: RestoreReport) -> None:
    lines = [f"{plural(report.written, 'file')} written."]
    if report.replaced:
        lines.append(f"Copies of the replaced files are in {report.kept_in}")
    lines += [f"not replaced, because it differs: {path}" for path in report.skipped]
    if report.skipped_settings:
        lines.append("The settings were not restored. Run restore without --yes to change these:")
        lines += [f"  {line}" for line in report.skipped_settings]
    value = {
        "written": report.written, "same": report.same, "replaced": report.replaced, "left": report.skipped,
        "kept_in": report.kept_in or None, "left_settings": report.skipped_settings,
        "projects": report.projects,
    }
    context.report(value, *lines)
