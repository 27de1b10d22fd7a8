"""`memkit why`, `memkit fix`, and `memkit how`: what is known of a file, an error, or a tool."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from memkit.cli.context import Context, command, path_named
from memkit.cli.output import plain, styled
from memkit.cli.screen import ID_CHARACTERS, MOST_COLUMNS, fit, pad, width
from memkit.errors import MemkitError
from memkit.text import plural

if TYPE_CHECKING:
    from memkit.browse.file_history import FileEvent

DEFAULT_COUNT = 40
UNANSWERED = "Commits are missing: git did not answer, or has none yet."
_TIME_COLUMNS = 16
_KIND_COLUMNS = 6


@command("why")
@click.argument("file")
@click.option(
    "-n", "count", type=click.IntRange(1), default=DEFAULT_COUNT, show_default=True,
    help="Number of events: each session's last edit first, reads last, of both the newest.",
)  # fmt: skip
def why_command(context: Context, file: str, count: int) -> None:
    """Show what was decided and changed about a file, oldest first.

    Lists the turns that edited or read it, decisions from them, and its commits, also under earlier names.
    `memkit show ID` shows an entry, `git show HASH` a commit.

    \b
      memkit why deploy/gateway.yaml
    """
    from memkit.browse.file_history import most_telling
    from memkit.browse.git_marks import is_inside, worktree_of

    root = context.project.root
    worktree = worktree_of(root, context.directory)
    name = path_named(file, worktree or root, root)
    if not name.strip("./ "):
        raise MemkitError(f"{file!r} is not a file; name one by its path, such as src/app.py")
    found = context.memory().why(name)
    shown = most_telling(found.events, count)
    value = {"file": name, "names": list(found.names), "git": found.has_git, "events": shown}
    # Without a repository, no commit is missing.
    unanswered = UNANSWERED if worktree and is_inside(name) and not found.has_git else ""
    if not shown:
        commits = ", and git has no commit of it." if found.has_git else f". {unanswered}".rstrip()
        context.report_page(value, [plain(f"Nothing is known of {name}: no turn read or edited it{commits}")])
        return
    columns = min(width(), MOST_COLUMNS)
    lines = [unanswered] if unanswered else []
    if earlier := found.names[1:]:
        lines.append(styled(fit(plain(f"{name}, before {', '.join(earlier)}"), columns), bold=True))
    if len(found.events) > count:
        argument = "-- " * file.startswith("-") + shlex.quote(plain(file))
        lines.append(styled(f"More: memkit why -n {count * 4} {argument}", dim=True))
    lines += [line for event in shown for line in _lines(event, columns)]
    context.report_page(value, lines)


def _lines(event: FileEvent, columns: int) -> Iterator[str]:
    indent = _TIME_COLUMNS + _KIND_COLUMNS + 4
    room = columns - indent - ID_CHARACTERS - 2
    before = f"{plain(event.time):<{_TIME_COLUMNS}}  {event.kind:<{_KIND_COLUMNS}}  "
    title, outcome = (plain(text).replace("**", "") for text in (event.title, event.outcome))
    identifier = styled(plain(event.id)[:ID_CHARACTERS], fg="cyan")
    is_bullet = event.kind in ("bullet", "fact")
    first = fit(title, room)
    if is_bullet and first.endswith("…"):
        first = fit(title[: title.rfind(" ", 0, room) + 1] or title, room)
        outcome = title[len(first) :].strip()
    shown = styled(pad(first, room), bold=event.kind not in ("read", "commit"))
    yield f"{styled(before, dim=True)}{shown}  {identifier}"
    made = ", ".join(event.commits)
    arrow = "" if is_bullet else "→ "
    left = columns - indent - len(arrow) - len(made) - 1 * bool(made)
    said = " ".join(filter(None, [fit(outcome, max(1, left)), made]))
    if said:
        yield " " * indent + fit(arrow + said, columns - indent)


@command("fix")
@click.argument("error", nargs=-1, required=True)
@click.option("-n", "count", type=click.IntRange(1), default=5, show_default=True, help="Most failures.")
def fix_command(context: Context, error: tuple[str, ...], count: int) -> None:
    """Show what was run after this error when it did not come back, newest first.

    A part of the message is enough; numbers, paths, and IDs may differ. Failures that were not solved come
    last. Words that begin with a dash go after `--`.

    \b
      memkit fix no module named yaml
    """
    found = context.memory().fix(" ".join(error))[:count]
    lines = [] if found else ["No command failed with this message; `memkit search` finds what mentions it."]
    for one in found:
        lines += [f"{one.date}  session {one.session[:8]}  {one.id}", f"  {one.command}"]
        end = f"    passed: {one.passed}" if one.passed else "    not solved"
        lines += [f"    failed: {one.error}", *(f"    then: {step}" for step in one.steps), end]
    context.report({"fixes": [one._asdict() for one in found]}, *map(plain, lines))


@command("how")
@click.argument("tool")
@click.option("-n", "count", type=click.IntRange(1), default=20, show_default=True, help="Most commands.")
def how_command(context: Context, tool: str, count: int) -> None:
    """Show the commands with a tool that worked in this project, the most frequent first.

    \b
      memkit how pytest
    """
    found = context.memory().how(tool)[:count]
    lines = [] if found else [f"No command with {tool} has worked here."]
    for one in found:
        lines += [one.command, f"  {plural(one.times, 'time')}, last on {one.date}  {one.id}"]
    context.report({"commands": [one._asdict() for one in found]}, *map(plain, lines))
