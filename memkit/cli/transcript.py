"""`memkit transcript`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memkit.cli.context import Context, command, plain, styled
from memkit.errors import NotFoundError

if TYPE_CHECKING:
    from memkit.claude_code.exchange import Message
    from memkit.index.chunk import Chunk
    from memkit.recall.transcript import Original

SHOWN_CHARACTERS = 2000


@command("transcript")
@click.argument("session", required=False)
@click.option("--turn", metavar="ID", help="Only this turn (as `memkit expand` names it).")
@click.option(
    "--context",
    "around_count",
    type=click.IntRange(0, 1000),
    default=3,
    show_default=True,
    help="Messages to show before and after the turn.",
)
def transcript_command(
    context: Context, session: str | None, turn: str | None, around_count: int
) -> None:
    """Show the original exchange as Claude Code kept it, or memkit's archive if that is gone.

    SESSION is a session's id, the first characters of one, or the path of any transcript (.jsonl);
    without it, the session that holds the turn, or the project's latest one.

    \b
      memkit transcript
      memkit transcript --turn 8b52f4fb --context 0
      memkit transcript 8bb06550 --json
    """
    from memkit.privacy.redact import redact
    from memkit.recall.transcript import around

    context.stay_in_project()
    settings = context.settings()
    patterns = settings.capture.compiled_patterns()
    original = _locate(context, session, turn)
    if not context.may_leave_project:
        context.stay_in_project(leaves=not _is_of_project(context, original.session))
    found = original.find_turn(turn) if turn else None
    messages = original.messages(lambda text: redact(text, patterns))
    damaged, missing = _damage(context, original)
    branch, commit = original.checked_out(context.home, found) if found else ("", "")
    chosen = list(messages) if found is None else around(messages, found, around_count)
    if context.as_json:
        context.print_json(
            {
                "session": original.session,
                "transcript": str(original.path) if original.archive is None else None,
                "archived": original.archive is not None,
                "turn": found,
                "branch": branch,
                "commit": commit,
                "damaged_bytes": damaged,
                "missing": missing,
                "messages": [message.as_dict() for message in chosen],
            }
        )
        return
    place = str(original.path)
    if original.archive is not None:
        place = f"session {original.session}, from memkit's archive: its transcript is gone"
    click.echo(styled(plain(place), dim=True))
    if branch or commit:
        where = [f"branch {branch}" if branch else "", f"commit {commit}" if commit else ""]
        click.echo(styled(plain(", ".join(filter(None, where))), dim=True))
    if damaged:
        named = f", turns {', '.join(missing)} among it" if missing else ""
        context.say(f"{damaged:,} bytes of this archive cannot be read{named}; see `memkit doctor`")
    for message in chosen:
        _show(context, message, mark=found is not None and message.turn == found)


def _damage(context: Context, original: Original) -> tuple[int, list[str]]:
    """How many bytes of the archive that is shown cannot be read, and which remembered turns it lacks."""
    if original.archive is None:
        return 0, []
    damaged = original.archive.damaged(original.session)
    if not damaged:
        return 0, []
    own = [chunk.turns for chunk in _remembered(context) if chunk.session == original.session]
    return damaged, original.missing(dict.fromkeys(turn for turns in own for turn in turns))


def _locate(context: Context, session: str | None, turn: str | None) -> Original:
    from memkit.recall.transcript import find_archived, find_original, original_at

    if session is None and turn is not None:
        session = _session_of(context, turn)
    if session is None:
        return _latest(context)
    if session.endswith(".jsonl") or "/" in session or os.sep in session:
        context.stay_in_project(leaves=True)  # it may be any file
        path = Path(session)
        if path.is_file():
            return original_at(context.home, path)
        found = find_archived(context.home, path.stem)
        if found is None or found.session != path.stem:
            raise NotFoundError(f"no such transcript: {session}")
        return found
    found = find_original(context.home, session)
    if found is None:
        raise NotFoundError(
            f"no transcript of session {session!r} on this machine (Claude Code deletes them after "
            "cleanupPeriodDays, by default 30), and none in memkit's archive"
        )
    return found


def _is_of_project(context: Context, session: str) -> bool:
    """Whether memkit's record of the session, or memory that this home wrote, says that it belongs here.

    A repository can bring memory with anchors that name any session.
    """
    from memkit.hook.own_entries import OwnEntries, heading_words
    from memkit.recall.transcript import is_told_of

    if is_told_of(context.home, context.project, session):
        return True
    named = [chunk for chunk in _remembered(context) if chunk.session == session]
    own = OwnEntries(context.home, context.project.root) if named else ()
    return any(heading_words(chunk.heading) in own for chunk in named)


def _session_of(context: Context, turn: str) -> str:
    for chunk in _remembered(context):
        if chunk.session and any(name.startswith(turn) for name in chunk.turns):
            return chunk.session
    raise NotFoundError(
        f"no turn {turn!r} in the memory of {context.project.root}; name its session"
    )


def _remembered(context: Context) -> list[Chunk]:
    """All that is indexed of the project, in the order of the days."""
    from memkit.index import open_chunks

    chunks = open_chunks(context.project, context.home, context.settings())
    return chunks.chunks() if chunks is not None else []


def _latest(context: Context) -> Original:
    from memkit.capture.sessions import Sessions
    from memkit.recall.transcript import find_original, original_at

    mine = [
        Path(state.transcript)
        for state in Sessions(context.home)
        if state.project == context.project.root and Path(state.transcript).is_file()
    ]
    if mine:
        path = max(mine, key=lambda path: path.stat().st_mtime)
        return original_at(context.home, path)
    # Of imported sessions, and those whose transcript is gone, only the memory tells whose they are.
    for session in dict.fromkeys(chunk.session for chunk in reversed(_remembered(context))):
        found = find_original(context.home, session)
        if found is not None:
            return found
    raise NotFoundError(f"no session of {context.project.root} is known; name one, or a path")


def _show(context: Context, message: Message, *, mark: bool) -> None:
    when = f"{message.time.astimezone():%Y-%m-%d %H:%M:%S}" if message.time else ""
    colour = {"user": "cyan", "assistant": "green"}.get(message.role)
    role = styled(plain(message.role), fg=colour, bold=True)
    click.echo(f"{role}  {styled(when, dim=True)}{'  *' if mark else ''}")
    if message.text:
        click.echo(plain(message.text))
    for tool in message.tools:
        if tool.result is None:
            line = f"→ {tool.name} {json.dumps(tool.input, ensure_ascii=False)}"
        else:
            line = f"← {tool.name}{' failed' if tool.is_error else ''}: {tool.result}"
        if len(line) > SHOWN_CHARACTERS:
            left = len(line) - SHOWN_CHARACTERS
            line = f"{line[:SHOWN_CHARACTERS]} … ({left:,} characters more; --json shows them)"
        click.echo(styled(plain(line), dim=True))
    click.echo()
