"""`memkit forget`."""

from __future__ import annotations

import functools
import sys
import time
from typing import TYPE_CHECKING

import click

from memkit.cli.context import Context, command, counted, day_named, plain, styled
from memkit.errors import MemkitError

if TYPE_CHECKING:
    from memkit.forget.locations import Locations
    from memkit.forget.selection import ForgetSelection

LOCK_SECONDS = 600.0
SHOWN_ENTRIES = 20


@command("forget")
@click.argument("ids", nargs=-1, metavar="[ID…]")
@click.option("--session", metavar="ID", help="All of a session; the id's beginning will do.")
@click.option("--since", metavar="DAY", help="This project's days from this one on.")
@click.option("--until", metavar="DAY", help="This project's days up to this one, included.")
@click.option("--query", metavar="QUERY", help="What `memkit search` finds for it.")
@click.option(
    "-k", "k", type=click.IntRange(1, 1000), help="How many results of --query (setting search.k)."
)
@click.option("--everything", is_flag=True, help="All that is remembered of this project.")
@click.option("--user", is_flag=True, help="Your own memory instead of this project's.")
@click.option(
    "--everywhere", is_flag=True, help="Also what other projects hold of that; by default they keep it."
)
@click.option("--dry-run", is_flag=True, help="Only show what would go.")
@click.option("--yes", is_flag=True, help="Do not ask; other projects keep what they hold.")
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
    """Erase something from journal, archive and index, for good, and keep it from being imported again.

    An ID is that of a result of `memkit search`, of a turn, of a bullet (its grip), of a note or of a fact.
    A turn goes whole, with every bullet and fact that rests on it. What an ID, --session or --query names
    goes from every project. --everything and days go from this project only: what another project holds
    too, after a merge or a second import, stays there and in the archive, unless you say otherwise. Shows
    first what would go and from which projects, and asks. A run that was killed is finished by the next
    one, also without an ID.

    \b
      memkit forget 20e3d2c8274c
      memkit forget --query "the customer's address" --dry-run
      memkit forget --since 2026-11-01 --until 2026-11-20
    """
    given = [bool(ids), session is not None, bool(since or until), query is not None, everything]
    if user:
        context.turn_to_user_memory()
    if sum(given) > 1:
        raise click.UsageError(
            "give IDs, --session, --since/--until, --query or --everything, one of them"
        )
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
    holdings = find_locations(context.home, context.project, selection)
    if not context.as_json:
        _show(holdings, context.project.root)
    if dry_run:
        if context.as_json:
            context.print_json(_as_dict(holdings, removed=False))
        return
    _confirm(yes)
    if holdings.shared and not yes and _confirm_shared(holdings):
        selection.everywhere = True
        holdings = find_locations(context.home, context.project, selection)
    _finish(context, selection, holdings)


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
        ids = _found(context, query, k)
    finder = selection.SelectionFinder(context.project, context.home, context.settings())
    return finder.select(ids)


def _found(context: Context, query: str, k: int | None) -> tuple[str, ...]:
    from memkit.recall.answers import SearchRequest
    from memkit.recall.ask import Asker

    asker = Asker(context.project, context.home, context.settings(), context.say)
    answer = asker.answer(SearchRequest(query, k))
    if not answer.results:
        raise MemkitError("nothing is found for that; `memkit search --all` shows the nearest entries")
    return tuple(result.id for result in answer.results)


def _finish(context: Context, selection: ForgetSelection, holdings: Locations | None) -> None:
    from memkit.forget.erasing import forget
    from memkit.index.lock import index_lock
    from memkit.llm.calls import calls_lock
    from memkit.recall.ask import end_if_hung

    settings_of = functools.cache(context.settings_of)
    end_if_hung(context.home, context.say)
    with (
        calls_lock(context.home, LOCK_SECONDS),
        index_lock(context.home, LOCK_SECONDS, context.say),
    ):
        problems = forget(context.home, context.project, selection, settings_of, context.say)
    for line in problems:
        context.say(plain(line))
    if problems:
        raise MemkitError("something is left; mend that, and `memkit forget` finishes it")
    if context.as_json:
        context.print_json({} if holdings is None else _as_dict(holdings, removed=True))
    else:
        click.echo("Forgotten." if holdings is not None else "What was unfinished is forgotten.")


def _show(holdings: Locations, root: str) -> None:
    entries = [*holdings.turns, *holdings.notes]
    for entry in entries[:SHOWN_ENTRIES]:
        click.echo(f"{styled(plain(entry.id), fg='yellow')}  {entry.day} {plain(entry.heading)}")
    if len(entries) > SHOWN_ENTRIES:
        click.echo(f"… and {len(entries) - SHOWN_ENTRIES} more")
    for passage in holdings.passages:
        click.echo(plain(f"{passage.path}:{passage.start}-{passage.end}  {passage.heading}"))
    for _, path in holdings.files:
        click.echo(plain(str(path)))
    for holding in holdings.facts:
        for name, line in holding.facts.items():
            click.echo(f"{styled(plain(name), fg='yellow')}  {plain(line)}")
    if not holdings:
        click.echo("Nothing is remembered of that; it would not be imported either.")
        return
    archived = sum(map(len, holdings.archived.values()))
    counts = [
        counted(len(holdings.turns), "turn"),
        counted(holdings.bullets, "bullet"),
        counted(len(holdings.notes) + len(holdings.passages), "note"),
        counted(sum(len(one.facts) for one in holdings.facts), "fact"),
        counted(archived, "archived turn"),
        counted(len(holdings.files), "markdown file"),
        counted(len(holdings.old_versions), "kept old version"),
    ]
    shown = [line for line in counts if not line.startswith("0 ")]
    click.echo(f"To be forgotten, in journal, archive and index: {', '.join(shown)}.")
    if holdings.by_project.keys() - {root}:
        for name, count in holdings.by_project.items():
            click.echo(plain(f"  from {name}: {count} of them"))
    for name, turns in sorted(holdings.shared.items()):
        click.echo(plain(f"  {name} keeps {len(turns)} of them (--everywhere: there too)"))


def _as_dict(holdings: Locations, *, removed: bool) -> dict[str, object]:
    return {
        "removed": removed,
        "turns": sorted(holdings.forgotten.turns),
        "grips": sorted(holdings.forgotten.grips),
        "notes": [entry.id for entry in holdings.notes],
        "bullets": holdings.bullets,
        "days": [day.day for day in holdings.days],
        "archived": {session: len(turns) for session, turns in holdings.archived.items()},
        "passages": [
            {"path": str(one.path), "start_line": one.start, "end_line": one.end}
            for one in holdings.passages
        ],
        "facts": sorted({name for one in holdings.facts for name in one.facts}),
        "files": [str(path) for _, path in holdings.files],
        "old_versions": [str(path) for path in holdings.old_versions],
        "projects": holdings.by_project,
        "shared": {root: len(turns) for root, turns in sorted(holdings.shared.items())},
    }


def _confirm(yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise MemkitError("nobody is there to be asked; `--yes` forgets it")
    click.confirm("Forget this for good?", abort=True)


def _confirm_shared(holdings: Locations) -> bool:
    """Whether what other projects hold is to go from them, too."""
    names = ", ".join(sorted(holdings.shared))
    return click.confirm(plain(f"Also forget it in {names}?"), default=False)
