"""`memkit why`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from memkit.cli.context import Context, command, path_named
from memkit.cli.output import plain, styled
from memkit.cli.screen import ID_CHARACTERS, MOST_COLUMNS, fit, pad, width
from memkit.errors import MemkitError

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
        lines.append(styled(f"More: memkit why -n {count * 4} {_argument(file)}", dim=True))
    lines += [line for event in shown for line in _lines(event, columns)]
    context.report_page(value, lines)


def _argument(file: str) -> str:
    quoted = shlex.quote(plain(file))
    return f"-- {quoted}" if file.startswith("-") else quoted


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
