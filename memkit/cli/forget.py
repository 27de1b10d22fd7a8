"""`memkit forget`."""

from __future__ import annotations

import functools
import sys
import time
from typing import TYPE_CHECKING

import click

from memkit.cli.context import Context, command, day_named
from memkit.cli.output import plain, plural, styled
from memkit.errors import MemkitError

if TYPE_CHECKING:
    from memkit.forget.locations import Locations
    from memkit.forget.selection import ForgetSelection

LOCK_SECONDS = 600.0
SHOWN_ENTRIES = 20


@command("forget")
@click.argument("ids", nargs=-1, metavar="[ID…]")
@click.option("--session", metavar="ID", help="A whole session; the start of its ID is enough.")
@click.option("--since", metavar="DAY", help="This project's days from this one on.")
@click.option("--until", metavar="DAY", help="This project's days up to and including this one.")
@click.option("--query", metavar="QUERY", help="What `memkit search` finds for QUERY.")
@click.option(
    "-k", "k", type=click.IntRange(1, 1000), help="The number of results of --query (setting search.k)."
)
@click.option("--everything", is_flag=True, help="All memory of this project.")
@click.option("--user", is_flag=True, help="Your own memory instead of this project's.")
@click.option("--everywhere", is_flag=True, help="Also the copies in other projects, which stay by default.")
@click.option("--dry-run", is_flag=True, help="Only show what would be erased.")
@click.option("--yes", is_flag=True, help="Do not ask; other projects keep their copies.")
def forget_command(
    context: Context,
    ids: tuple[str, ...],
    session: str | None,
    since: str | None,
    until: str | None,
    query: str | None,
    k: int | None,
    everything: bool,
    user: bool,
    everywhere: bool,
    dry_run: bool,
    yes: bool,
) -> None:
    """Erase something from journal, archive, and index for good, and never import it again.

    Each ID names a result of `memkit search`, a turn, a bullet, a note, or a fact. A turn goes with all
    bullets and facts that depend on it. An ID, --session, or --query erases from every project.
    --everything, --since, and --until erase from this project only: copies in other projects, after a merge
    or a second import, stay there and in the archive.

    The command first shows what it would erase and from which projects, and asks. If a run was killed, the
    next one finishes it, also without an ID.

    \b
      memkit forget 20e3d2c8274c
      memkit forget --query "the customer's address" --dry-run
      memkit forget --since 2026-11-01 --until 2026-11-20
    """
    given = [bool(ids), session is not None, bool(since or until), query is not None, everything]
    if user:
        context.turn_to_user_memory()
    if sum(given) > 1:
        raise click.UsageError("give only one of: IDs, --session, --since/--until, --query, --everything")
    from memkit.forget.locations import find_locations
    from memkit.forget.selection import ForgetSelection
    from memkit.privacy.tombstones import Tombstones

    is_unfinished = Tombstones(context.home).unfinished() is not None
    if not any(given):
        if not is_unfinished:
            raise click.UsageError("say what to forget: IDs, --session, --since, --query, --everything")
        _finish(context, ForgetSelection(), None)
        return
    selection = _select(context, ids, session, (since, until), query, k)
    selection.everywhere = everywhere
    found = find_locations(context.home, context.project, selection)
    if not context.as_json:
        _show(found, context.project.root)
    if dry_run:
        if context.as_json:
            context.print_json(_as_dict(found, removed=False))
        return
    _confirm(yes)
    if found.shared and not yes and _confirm_shared(found):
        selection.everywhere = True
        found = find_locations(context.home, context.project, selection)
    _finish(context, selection, found)


def _select(
    context: Context,
    ids: tuple[str, ...],
    session: str | None,
    days: tuple[str | None, str | None],
    query: str | None,
    k: int | None,
) -> ForgetSelection:
    from memkit.forget import selection

    now = time.time()
    if session is not None:
        return selection.of_session(context.project, context.home, session, now)
    if any(days):
        since, until = map(day_named, days)
        return selection.of_days(context.project, context.home, since, until, now)
    if not ids and query is None:
        return selection.of_everything(context.project, context.home, now)
    if query is not None:
        ids = _search(context, query, k)
    finder = selection.SelectionFinder(context.project, context.home, context.settings())
    return finder.select(ids)


def _search(context: Context, query: str, k: int | None) -> tuple[str, ...]:
    from memkit.recall.client import SearchClient
    from memkit.recall.results import SearchRequest

    client = SearchClient(context.project, context.home, context.settings(), context.say)
    answer = client.answer(SearchRequest(query, k))
    if not answer.results:
        raise MemkitError("nothing is found for that; `memkit search --all` shows the nearest entries")
    return tuple(result.id for result in answer.results)


def _finish(context: Context, selection: ForgetSelection, found: Locations | None) -> None:
    from memkit.forget import forget
    from memkit.index import index_lock
    from memkit.ipc.stop import stop_hung_service
    from memkit.llm.calls import calls_lock

    settings_of = functools.cache(context.settings_of)
    stop_hung_service(context.home, context.say)  # it may hold the lock of model calls
    with (
        calls_lock(context.home, LOCK_SECONDS),
        index_lock(context.home, LOCK_SECONDS, context.say),
    ):
        problems = forget(context.home, context.project, selection, settings_of, context.say)
    for line in problems:
        context.say(plain(line))
    if problems:
        raise MemkitError("not everything was erased; fix these problems and run `memkit forget` again")
    if context.as_json:
        context.print_json({} if found is None else _as_dict(found, removed=True))
    else:
        click.echo("Forgotten." if found is not None else "The interrupted run is finished.")


def _show(found: Locations, root: str) -> None:
    entries = [*found.turns, *found.notes]
    for entry in entries[:SHOWN_ENTRIES]:
        click.echo(f"{styled(plain(entry.id), fg='yellow')}  {entry.day} {plain(entry.heading)}")
    if len(entries) > SHOWN_ENTRIES:
        click.echo(f"… and {len(entries) - SHOWN_ENTRIES} more")
    for passage in found.passages:
        click.echo(plain(f"{passage.path}:{passage.start}-{passage.end}  {passage.heading}"))
    for _, path in found.files:
        click.echo(plain(str(path)))
    for location in found.facts:
        for name, line in location.facts.items():
            click.echo(f"{styled(plain(name), fg='yellow')}  {plain(line)}")
    if not found:
        click.echo("The memory has nothing of that. An import would leave it out, too.")
        return
    counts = [
        plural(len(found.turns), "turn"),
        plural(found.bullets, "bullet"),
        plural(len(found.notes) + len(found.passages), "note"),
        plural(sum(len(one.facts) for one in found.facts), "fact"),
        plural(sum(map(len, found.archived.values())), "archived turn"),
        plural(len(found.files), "markdown file"),
        plural(len(found.old_versions), "old version"),
    ]
    shown = [line for line in counts if not line.startswith("0 ")]
    click.echo(f"To be erased from journal, archive, and index: {', '.join(shown)}.")
    if found.by_project.keys() - {root}:
        for name, count in found.by_project.items():
            click.echo(plain(f"  from {name}: {count} of them"))
    for name, turns in sorted(found.shared.items()):
        click.echo(plain(f"  {name} keeps {len(turns)} of them (--everywhere erases them there, too)"))


def _as_dict(found: Locations, *, removed: bool) -> dict[str, object]:
    return {
        "removed": removed,
        "turns": sorted(found.forgotten.turns),
        "grips": sorted(found.forgotten.grips),
        "notes": [entry.id for entry in found.notes],
        "bullets": found.bullets,
        "days": [day.day for day in found.days],
        "archived": {session: len(turns) for session, turns in found.archived.items()},
        "passages": [
            {"path": str(one.path), "start_line": one.start, "end_line": one.end} for one in found.passages
        ],
        "facts": sorted({name for one in found.facts for name in one.facts}),
        "files": [str(path) for _, path in found.files],
        "old_versions": [str(path) for path in found.old_versions],
        "projects": found.by_project,
        "shared": {root: len(turns) for root, turns in sorted(found.shared.items())},
    }


def _confirm(yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise MemkitError("there is no terminal to ask on; `--yes` forgets it without asking")
    click.confirm("Forget this for good?", abort=True)


def _confirm_shared(found: Locations) -> bool:
    names = ", ".join(sorted(found.shared))
    return click.confirm(plain(f"Also forget it in {names}?"), default=False)
