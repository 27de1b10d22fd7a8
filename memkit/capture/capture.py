"""From transcripts and hook events to the journal and the archive.

Reads a session's transcript on, has the journal write digests of its turns and the archive keep them whole.
Every step is keyed and repeatable: being killed anywhere and run again changes nothing.
"""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

from memkit import anchors
from memkit.archive.archive import Archive
from memkit.archive.turn import make_archived_turn
from memkit.capture.live_sessions import LiveSessions
from memkit.capture.outcome import CaptureOutcome, Choose
from memkit.capture.sessions import Session, Sessions
from memkit.capture.summary_queue import SummaryQueue
from memkit.capture.told import Told, shows
from memkit.claude_code.omitted import Hidden
from memkit.claude_code.transcript import Transcript, clean
from memkit.claude_code.turn import Turn, read_turns, turn_id
from memkit.errors import ArchiveError, MemkitError, NewerFileError, TranscriptError
from memkit.files import create_private, make_private_directory
from memkit.hook.own_entries import note_own, own_file
from memkit.hook.project import Project, Registry
from memkit.ipc import unindexed
from memkit.ipc.spool import PROMPT_EVENT, time_of
from memkit.journal.day_file import section_hash
from memkit.journal.digest import Digest, make_digest
from memkit.journal.journal import Journal
from memkit.paths import Home
from memkit.privacy.redact import redact
from memkit.privacy.tombstones import Forgotten, Tombstones
from memkit.settings.load import Settings

logger = logging.getLogger(__name__)

PATIENCE_SECONDS = 2.0
"""How long after an event the transcript may still lack the last message (it is written asynchronously)."""

BATCH_TURNS = 50
"""Turns held in memory and written at once."""


class NotYet(Exception):
    """The transcript does not show the event's turn yet; try again shortly."""


class Capture:
    """Captures into the journals of all projects of one memory home.

    The caller holds the index lock: one process captures at a time.
    """

    def __init__(self, home: Home, settings: Settings) -> None:
        self.home = home
        self.settings = settings
        self.sessions = Sessions(home)
        self._archive = Archive(home)
        self._patterns = settings.capture.compiled_patterns()
        self._hidden = Hidden(settings.capture.exclude)

    def handle(self, record: dict[str, Any], now: float) -> None:
        """Bring about the effect of one hook event; durable when it returns.

        Raises `NotYet` while the transcript is behind, `MemkitError` or `OSError` on failure.
        """
        project = Project.at_root(str(record.get("project") or record["cwd"]), self.home)
        if self._is_left_out(project, str(record.get("cwd", "")), None):
            return
        transcript = str(record.get("transcript", ""))
        session = self.sessions.load(Path(transcript).stem or str(record["session"]))
        session.project = project.root
        session.told = max(session.told, time_of(record))
        if transcript != session.transcript and transcript:
            session.transcript = transcript
            session.read_again()
        event = record["event"]
        if event == PROMPT_EVENT:
            turn = Told(record, "", self.redact).turn_id
            if not self._is_forgotten(turn, session, time_of(record)):
                prompt = self.redact(clean(str(record.get("prompt", ""))))
                session.remember_prompt(str(record.get("prompt_id", "")), prompt)
            self.sessions.save(session)
        elif event == "SessionStart":
            self.sessions.save(session)
            self._adopt(project)
            client = record.get("client")
            if isinstance(client, int):
                LiveSessions(self.home).begin(str(record["session"]), project.root, client)
            self.catch_up({session.id, *(one.session for one in LiveSessions(self.home))})
        else:
            is_late = now - float(record["time"]) > PATIENCE_SECONDS
            self._read_event(session, project, record, is_late)
            if event == "SessionEnd":
                LiveSessions(self.home).end(str(record["session"]))

    def catch_up(self, live: Collection[str]) -> int:
        """Read what crashed sessions left in their transcripts; return how many those were.

        Sessions that are just starting, or `live`, are left to their own events: a turn that has hardly
        begun would answer the question it asks of the memory.
        """
        count = 0
        for session in self.sessions:
            if session.id not in live and session.project and session.has_unread_transcript:
                project = Project.at_root(session.project, self.home)
                if project.is_off:
                    continue
                try:
                    self.read(session, lambda turn, project=project: project, is_live=True)  # type: ignore[misc]
                    count += 1
                except MemkitError as error:  # one session's trouble is not another's
                    logger.warning("session %s is not caught up: %s", session.id, error)
        return count

    def import_file(
        self,
        path: Path,
        choose: Choose,
        progress: Callable[[int], None] | None = None,
        root: str = "",
    ) -> CaptureOutcome:
        """Remember a transcript from its start; `progress` is told how many bytes of it were read.

        `root` is that of the project its turns go to, if it is known. A live session of another project
        keeps its place in the transcript: what is read for one project is not read for the other.
        """
        session = self.sessions.load(path.stem)
        if session.transcript not in ("", str(path)):
            # Another file of that name is the session's own; anchors alone keep this one's turns single.
            return self.read(Session("", str(path)), choose, progress)
        session.transcript = str(path)
        if session.project and root not in ("", session.project):
            return self._read_for_another(session, choose, progress)
        session.read_again()
        captured = self.read(session, choose, progress)
        self._archive.drop_damage(anchors.safe(session.id))  # all that can be had was archived again
        return captured

    def _read_for_another(
        self, session: Session, choose: Choose, progress: Callable[[int], None] | None
    ) -> CaptureOutcome:
        transcript = Transcript(Path(session.transcript), 0, self._hidden)
        captured = CaptureOutcome()
        for batch in _batches(read_turns(transcript)):
            captured.add(self._write(session, batch, choose, moves=False))
            if progress is not None:
                progress(batch[-1].end)
        captured.skipped = dict(transcript.counts)
        self.sessions.save(session)
        return captured

    def import_turns(self, turns: Iterable[Turn], choose: Choose) -> CaptureOutcome:
        """Remember turns of which there is no transcript."""
        captured = CaptureOutcome()
        for batch in _batches(turns):
            captured.add(self._write(Session("", ""), batch, choose))
        return captured

    def _read_event(
        self, session: Session, project: Project, record: dict[str, Any], is_late: bool
    ) -> None:
        """Write the turns up to the event's own one, whose final message is in the event."""
        turns: list[Turn] = []
        try:
            turns = list(read_turns(self._transcript(session)))
        except TranscriptError:
            logger.info("session %s has no transcript at %s", session.id, session.transcript)
        # The message of a failure is the error.
        said = "" if record["event"] == "StopFailure" else str(record.get("message", ""))
        message = self.redact(clean(said))
        told = Told(record, message, self.redact)
        own = told.find(session, turns)
        if own is None and told.was_read(session, turns):
            return
        if own is not None and told.is_shown_by(own):
            pass
        elif not is_late and (message or (own is None and record["event"] == "Stop")):
            raise NotYet
        elif own is not None and message:
            if not own.is_skipped and not self._is_forgotten(own.id, session, own.time):
                session.answers[own.id] = [message, section_hash(own.answer)]
        elif message:  # its prompt is kept: the event may be handled again
            turns.append(told.as_turn(session))
        has_ended = own is not None and record["event"] in ("Stop", "StopFailure")
        if own is not None and has_ended:
            own.commit = str(record.get("commit", ""))
            turns = turns[: turns.index(own) + 1]  # what came after it is still under way
        for batch in _batches(turns):
            self._write(session, batch, lambda turn: project, is_live=True)
        if has_ended:
            session.prompts.pop(str(record.get("prompt_id", "")), None)
        self.sessions.save(session)

    def read(
        self,
        session: Session,
        choose: Choose,
        progress: Callable[[int], None] | None = None,
        *,
        is_live: bool = False,
    ) -> CaptureOutcome:
        """Write all turns from the session's checkpoint on, and move the checkpoint.

        `progress` is told up to which byte that is done. Turns of a session that `is_live` are summarized
        in time, if the settings say so.
        """
        transcript = self._transcript(session)
        captured = CaptureOutcome()
        for batch in _batches(read_turns(transcript)):
            captured.add(self._write(session, batch, choose, is_live=is_live))
            if progress is not None:
                progress(batch[-1].end)
        captured.skipped = dict(transcript.counts)
        session.size = max(session.size, transcript.end)
        if session.id:
            self.sessions.save(session)
        return captured

    def _write(
        self,
        session: Session,
        turns: list[Turn],
        choose: Choose,
        *,
        is_live: bool = False,
        moves: bool = True,
    ) -> CaptureOutcome:
        """Write one batch of turns; note in `session` how far that is, if it `moves`. The caller saves it."""
        captured = CaptureOutcome()
        groups: dict[str, list[Digest]] = {}
        kept: list[tuple[Turn, str]] = []
        growing: dict[str, tuple[Digest, str]] = {}  # the transcript's last turn, and what it lacks
        for turn in turns:
            self._complete(turn, session)
            project = choose(turn)
            if project is None:
                continue
            if self._was_forgotten(turn, project):
                captured.left_out += turn.is_memory
            elif not turn.is_memory:
                if turn.is_compacted:  # where a segment ends
                    kept.append((turn, project.root))
            elif self._is_left_out(project, turn.cwd, turn.time):
                captured.left_out += 1
            elif not turn.prompt and turn.entries and self._is_repeated(
                turn, project.root, Path(session.transcript)
            ):
                logger.info("session %s: an answer without its prompt is known already", session.id)
            else:
                digest = make_digest(turn, project.root, self.redact)
                growing[turn.id if not turn.entries else ""] = digest, project.root
                groups.setdefault(project.root, []).append(digest)
                kept.append((turn, project.root))
                captured.turns += 1
        if growing and session.id:
            for digest, root in growing.values():
                session.will_write(digest.turn, root, section_hash(digest.section))
            self.sessions.save(session)
        for root, digests in groups.items():
            unindexed.mark(self.home, root)
            project = Project(root)
            self._adopt(project)
            journal = Journal(project, shared=self.settings.memory.shared, home=self.home)
            captured.written += len(journal.write(digests, session.growing_in(root)))
            captured.projects.add(root)
            if is_live and self.settings.summarize.is_on:
                self._mark_for_summary(journal, digests)
        if kept and self.settings.archive.enabled:
            self._archive.keep(kept, Path(session.transcript), self.redact, self._hidden)
        if session.id:
            for digest, root in growing.values():
                session.has_written(digest.turn, root, section_hash(digest.section))
        shown = [turn for turn in turns if turn.entries]
        if shown and moves:
            session.has_read([turn.id for turn in shown])
            session.offset = shown[-1].start
            session.size = shown[-1].end
        elif shown:
            for root in groups:
                session.have_ended(session.growing_in(root).keys() - {shown[-1].id}, root)
        return captured

    def _adopt(self, project: Project) -> None:
        """Once for each project: count as this home's own what the archive knows of its memory.

        The record of what this home wrote is younger than memories are; see `own_entries`.
        """
        done = Path(own_file(self.home, project.root)).with_suffix(".adopted")
        if done.exists():
            return
        known: list[str] = []
        try:
            for day in Journal(project).days():
                content = Journal(project).day(day)
                for session in content.sessions():
                    turns = {
                        turn.id
                        for turn in self._archive.turns(session)
                        if turn.project == project.root
                    }
                    known += (
                        content.text(section)
                        for section in content.sections
                        if section.pairs.get("turn") in turns
                        or (turns and section.pairs.get("session") == session)
                    )
        except MemkitError as error:  # then less of it is quoted
            logger.warning("what is this home's own in %s is not known: %s", project.root, error)
            return  # asked again with the next turn
        note_own(self.home, project.root, "", "\n".join(known))
        make_private_directory(self.home.projects)
        create_private(str(done)).close()

    def _mark_for_summary(self, journal: Journal, digests: list[Digest]) -> None:
        root = journal.project.root
        waiting = SummaryQueue(self.home)
        for session in {digest.session for digest in digests}:
            days = {journal.day_for(digest.day) for digest in digests if digest.session == session}
            try:
                waiting.add(root, session, days, time.time())
            except NewerFileError as error:  # costs a summary; the turns are written all the same
                logger.warning("%s", error)

    def _complete(self, turn: Turn, session: Session) -> None:
        """Give the turn the final message that an event told, until the transcript shows a later one."""
        told, seen = session.answers.get(turn.id, ("", ""))
        is_behind = not turn.answer or turn.worked_since or section_hash(turn.answer) == seen
        if told and is_behind and not shows(turn, told, self.redact):
            turn.answer, turn.is_told = told, True

    def _is_left_out(self, project: Project, directory: str, time: datetime | None) -> bool:
        """Whether nothing of what is done in `directory`, or was at that time, is remembered."""
        if project.is_off or (time is not None and project.was_off(time.timestamp())):
            return True
        return self._hidden.excludes(directory, project.root)

    @functools.cached_property
    def _forgotten(self) -> Forgotten:
        """What is not remembered again; nobody adds to it while this process holds the index lock."""
        return Tombstones(self.home).forgotten()

    def _was_forgotten(self, turn: Turn, project: Project) -> bool:
        forgotten = self._forgotten
        if forgotten.covers(turn.id, project.root, turn.session, turn.time):
            return True
        is_elsewhere = forgotten.keeps_elsewhere(turn.id)  # and not forgotten by this project
        if forgotten.periods and not is_elsewhere and any(
            forgotten.covers(turn.id, root, turn.session, turn.time)
            for root in self._roots_of(turn, project)
        ):
            return True
        is_typed = not turn.prompt_id and not turn.uuid  # all that the client's history knows
        return is_typed and self._forgotten.covers_typed(turn.time)

    def _roots_of(self, turn: Turn, project: Project) -> set[str]:
        """Where else the project may have been when a period of it was forgotten: where its directory was
        before, and where the turn was made if another memory was merged into this one, or is shared.
        """
        roots = {*Registry.read(self.home).earlier_roots(project.root)}
        return roots | ({Project.containing(turn.cwd).root} if turn.cwd else set())

    def _is_forgotten(self, turn: str, session: Session, time: datetime | float | None) -> bool:
        return self._forgotten.covers(turn, session.project, session.id, time)

    def _transcript(self, session: Session) -> Transcript:
        """The session's transcript from its checkpoint on; from its start if that is not there any more."""
        path = Path(session.transcript)
        if session.offset and path.is_file() and not self._is_unchanged(path, session):
            session.read_again()
        return Transcript(path, session.offset, self._hidden)

    def _is_unchanged(self, path: Path, session: Session) -> bool:
        """Whether the last turn that was read still begins at the checkpoint."""
        size = path.stat().st_size
        if size <= session.offset or not session.recent:
            return size >= session.offset
        first = next(iter(Transcript(path, session.offset)), None)
        if first is None or first.start != session.offset:
            return False
        if not (first.prompt_id or first.uuid):
            return True  # nothing tells
        name = first.session or path.stem
        return turn_id(name, first.prompt_id, first.uuid, "") == session.recent[-1]

    def _is_repeated(self, turn: Turn, root: str, transcript: Path) -> bool:
        """Whether a turn without a prompt is the end of one that is known: the transcript lost its head."""
        made = make_archived_turn(turn, root, transcript, self.redact, self._hidden)
        said = {(message.role, message.time, message.text) for message in made.messages}
        try:
            known = self._archive.turns(anchors.safe(turn.session))
        except ArchiveError as error:
            logger.warning("%s", error)
            known = []
        if any(
            said <= {(message.role, message.time, message.text) for message in one.messages}
            for one in known
            if one.id != turn.id
        ):
            return True
        digest = make_digest(turn, root, self.redact)
        answered = digest.section.partition("\n**Answered**")[2].strip()
        content = Journal(Project(root)).day(digest.day)
        others = [one.section for one in content.turns_of(digest.session)]
        texts = [content.text(one) for one in others if one.pairs["turn"] != turn.id]
        return bool(answered) and any(
            text.partition("\n**Answered**")[2].strip() == answered for text in texts
        )

    def redact(self, text: str) -> str:
        """`text` without secrets, the user's own patterns included."""
        return redact(text, self._patterns)


def _batches(turns: Iterable[Turn]) -> Iterator[list[Turn]]:
    iterator = iter(turns)
    while batch := list(islice(iterator, BATCH_TURNS)):
        yield batch
