"""Turn hook events and transcripts into entries of the journal and the archive.

The worker resolves an event's project and calls `Capture.handle`. That reads the session's new turns,
leaves out what must not be remembered, redacts the rest, archives and journals it, and marks the project
for indexing and summaries. Every step is keyed and repeatable: after a kill, running it again is safe.
"""

from __future__ import annotations

import functools
import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from memkit import anchors
from memkit.agents.omitted import EXCLUDED, Hidden
from memkit.agents.registry import CLAUDE_CODE, agent_of, is_there, open_transcript, session_at, status_of
from memkit.agents.session_file import SessionFile
from memkit.agents.turns import read_turns
from memkit.archive.archive import Archive
from memkit.capture.sessions import LiveSessions, Session, Sessions
from memkit.capture.summary_queue import SummaryQueue
from memkit.conversation.turn import Turn, turn_id
from memkit.errors import MemkitError, NewerFileError, TranscriptError
from memkit.files import create_private, make_private_directory
from memkit.hook.entries import note_own, own_file
from memkit.hook.tally import note_excluded
from memkit.ipc import unindexed
from memkit.ipc.spool import time_of
from memkit.journal.day_file import section_hash
from memkit.journal.day_summaries import turns_of
from memkit.journal.digest import Digest, compaction_digests, make_digest
from memkit.journal.journal import Journal
from memkit.journal.markup import is_same_cut
from memkit.paths import Home
from memkit.privacy.redact import hid_private, redact, skips
from memkit.privacy.tombstones import Forgotten, Tombstones
from memkit.projects.project import Project, Registry
from memkit.settings import AUTO
from memkit.settings.load import Settings

logger = logging.getLogger(__name__)

QUIET_SECONDS = 60.0
"""A turn of another agent without an answer has ended when nothing more came for this long."""

PATIENCE_SECONDS = 2.0
"""Longest wait for a turn's answer after its Stop event; Claude Code writes the transcript later."""

BATCH_TURNS = 50
"""Turns held in memory and written at once."""


class TranscriptBehind(Exception):
    """The transcript lacks the answer of the event's turn; try again shortly."""


@dataclass(slots=True)
class CaptureOutcome:
    """The result of reading a transcript.

    Attributes:
        turns: how many are worth remembering.
        written: how many of them are new or have grown.
        left_out: how many are excluded, forgotten, or from when memkit was off.
        skipped: how many lines could not be read, by kind.
        projects: the roots of the projects with remembered turns.
        goes_on: whether the last turn was left for later, because it goes on.
    """

    turns: int = 0
    written: int = 0
    left_out: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    projects: set[str] = field(default_factory=set)
    goes_on: bool = False

    def add(self, other: CaptureOutcome) -> None:
        """Add the numbers of another outcome."""
        self.turns += other.turns
        self.written += other.written
        self.left_out += other.left_out
        self.projects |= other.projects
        self.skipped += other.skipped


def project_of_event(record: dict[str, Any], home: Home) -> Project:
    """Return the project of a hook event, wherever its directory has moved since."""
    return Project.at_root(str(record.get("project") or record["cwd"]), home)


class Capture:
    """Captures turns for all projects of one memory home. The caller holds the capture lock."""

    def __init__(
        self, home: Home, settings: Settings,
        will_write: Callable[[str, str, str], None] = lambda root, session, day: None,
    ) -> None:
        """`will_write` gets the project's root, the session, and the day before a turn is written there."""
        self.home = home
        self.settings = settings
        self._will_write = will_write
        self.sessions = Sessions(home)
        self._archive = Archive(home)
        self.redact = partial(redact, patterns=settings.capture.compiled_patterns())
        self._hidden = Hidden(settings.capture.exclude)
        self._other_roots: dict[tuple[str, str], set[str]] = {}

    def handle(self, record: dict[str, Any], project: Project, now: float) -> None:
        """Apply one hook event to its project; durable when it returns.

        Raise `TranscriptBehind` while the transcript lacks the answer, `MemkitError` or `OSError` on failure.
        """
        note_excluded(self.home, project.root, self._hidden.excludes(project.root, project.root))
        if project.is_off or self._hidden.excludes(str(record.get("cwd", "")), project.root):
            return
        transcript, name = str(record.get("transcript", "")), str(record["session"])
        agent = agent_of(name)
        is_other = agent is not CLAUDE_CODE
        transcript = transcript or (agent.file_of(name) if is_other else "")  # Codex may name none
        session = self.sessions.load(name if is_other else Path(transcript).stem or name)
        session.project = project.root
        session.elsewhere |= is_other
        session.last_event = max(session.last_event, time_of(record))
        if transcript and transcript != session.transcript:
            session.transcript = transcript
            session.read_again()
        event = record["event"]
        live = LiveSessions(self.home)
        if event == "SessionStart":
            session.elsewhere = is_other or bool(record.get("elsewhere"))
            self.sessions.save(session)
            adopt_memory(project, self.home)
            if isinstance(record.get("client"), int):
                live.begin(str(record["session"]), project.root, record["client"])
            self.catch_up({session.id, *(one.session for one in live)})
        elif event in ("Stop", "StopFailure"):
            self._end_turn(session, project, record, now)
        elif event in ("PreCompact", "SessionEnd"):
            turns = self._new_turns(session)
            session.under_way = turns[-1].prompt_id if turns and event == "PreCompact" else ""
            self._write_all(session, project, turns)
        if event == "SessionEnd":
            live.end(str(record["session"]))

    def _end_turn(self, session: Session, project: Project, record: dict[str, Any], now: float) -> None:
        """If the transcript stays behind, write what it shows: a later event completes the turn."""
        turns = self._new_turns(session)
        prompt_id = str(record.get("prompt_id", ""))
        named = (one for one in reversed(turns) if prompt_id in (one.prompt_id, *one.other_prompt_ids))
        ended = next(named, None) if prompt_id else None
        if ended is None and turn_id(str(record["session"]), prompt_id, "", "") in session.recent:
            return  # read before, and another turn followed
        if ended is None and turns and not (prompt_id and any(turn.prompt_id for turn in turns)):
            ended = turns[-1]  # an old transcript has no prompt ids
        is_behind = ended is None or (record["event"] == "Stop" and (not ended.answer or ended.worked_since))
        if is_behind and now - float(record["time"]) <= PATIENCE_SECONDS:
            raise TranscriptBehind
        if ended is not None:
            ended.commit = str(record.get("commit", ""))
            turns = turns[: turns.index(ended) + 1]
            if session.under_way == ended.prompt_id:
                session.under_way = ""
        self._write_all(session, project, turns)

    def _new_turns(self, session: Session) -> list[Turn]:
        try:
            return list(read_turns(self._transcript(session)))
        except TranscriptError as error:
            logger.info("session %s: %s", session.id, error)
            return []

    def _write_all(self, session: Session, project: Project, turns: list[Turn]) -> None:
        for batch in _batches(turns):
            self._write(session, project, batch, is_live=True)
        self.sessions.save(session)

    def catch_up(self, live: Collection[str]) -> int:
        """Capture the unread ends of ended sessions' transcripts; return the number of those sessions.

        Skip `live` sessions: a search could otherwise find the very turn that asks it.
        """
        count = 0
        for session in self.sessions:
            if session.id in live or not session.project or not session.has_unread_transcript:
                continue
            project = Project.at_root(session.project, self.home)
            if project.is_off:
                continue
            try:
                # Another agent's session may be live.
                now = time.time() if agent_of(session.id) is not CLAUDE_CODE else None
                self._read(session, project, is_live=True, now=now)
                count += 1
            except MemkitError as error:  # go on with the other sessions
                logger.warning("session %s could not be read: %s", session.id, error)
        return count

    def import_file(
        self, path: Path, project: Project, is_wanted: Callable[[Turn], bool] = lambda turn: True,
        progress: Callable[[int], None] = lambda end: None, now: float | None = None,
    ) -> CaptureOutcome:
        """Remember the wanted turns of a transcript, from its start; report each byte reached to `progress`.

        At a time `now`, follow a session of another agent instead: read on, up to a last turn that goes on.
        If another project owns the session, the checkpoint stays: that project still has to read on.
        """
        session = self.sessions.load(session_at(path))
        if session.transcript not in ("", str(path)) and is_there(Path(session.transcript)):
            # The session's own transcript is elsewhere, so only anchors prevent duplicate turns.
            return self._read(Session("", str(path)), project, is_wanted, progress, now=now)
        session.transcript = str(path)
        if session.project not in ("", project.root):
            return self._read(session, project, is_wanted, progress, moves=False, now=now)
        if now is not None:
            session.elsewhere = True
            return self._read(session, project, is_wanted, progress, is_live=True, now=now)
        session.read_again()
        outcome = self._read(session, project, is_wanted, progress)
        # Everything that is still readable was archived again.
        self._archive.drop_damage(anchors.safe(session.id))
        return outcome

    def import_turns(self, turns: Iterable[Turn], project: Project) -> CaptureOutcome:
        """Remember turns that have no transcript."""
        outcome = CaptureOutcome()
        for batch in _batches(turns):
            outcome.add(self._write(Session(""), project, batch, is_live=False))
        return outcome

    def take(self, turn: Turn, session: Session, project: Project) -> CaptureOutcome:
        """Remember a turn of a live session that has no transcript, or what it has grown to."""
        outcome = self._write(session, project, [turn], is_live=True)
        self.sessions.save(session)
        return outcome

    def _read(
        self, session: Session, project: Project, is_wanted: Callable[[Turn], bool] = lambda turn: True,
        progress: Callable[[int], None] = lambda end: None, *, is_live: bool = False, moves: bool = True,
        now: float | None = None,
    ) -> CaptureOutcome:  # fmt: skip
        """Unless `moves`, read from the start and keep the checkpoint. `is_live` turns wait for a summary."""
        path = Path(session.transcript)
        transcript = self._transcript(session) if moves else open_transcript(path, 0, self._hidden)
        outcome = CaptureOutcome()
        turns: Iterable[Turn] = read_turns(transcript)
        if now is not None:
            found = list(turns)
            outcome.goes_on = bool(found) and _goes_on(found[-1], path, now)
            turns = found[: len(found) - outcome.goes_on]
        for batch in _batches(turns):
            outcome.add(self._write(session, project, batch, is_wanted, is_live=is_live, moves=moves))
            progress(batch[-1].end)
        outcome.skipped = Counter(transcript.counts)
        if moves and not outcome.goes_on:
            session.size = max(session.size, transcript.end)
        if session.id:
            self.sessions.save(session)
        return outcome

    def _write(
        self, session: Session, project: Project, turns: list[Turn],
        is_wanted: Callable[[Turn], bool] = lambda turn: True, *, is_live: bool, moves: bool = True,
    ) -> CaptureOutcome:
        """The caller saves the session at the end."""
        outcome = CaptureOutcome()
        digests: list[Digest] = []
        kept: list[tuple[Turn, str]] = []
        off = project.off_periods()
        wanted = list(filter(is_wanted, turns))
        self._name_as_archived([turn for turn in wanted if turn.origin])
        for turn in wanted:
            if self._is_forgotten(turn, project):
                outcome.left_out += turn.is_memory
            elif not turn.is_memory:
                if turn.is_compacted:  # a segment ends here
                    kept.append((turn, project.root))
            elif self._hidden.excludes(turn.cwd, project.root) or _is_within(turn, off):
                outcome.left_out += 1
            else:
                digest = make_digest(turn, project.root, self.redact)
                if not turn.prompt and _is_known_answer(digest, project):
                    logger.info("session %s: skipped a known answer that lost its prompt", session.id)
                    continue
                digests += self._summaries(session, project, turn, is_wanted)
                digests.append(digest)
                kept.append((turn, project.root))
                outcome.turns += 1
        # Before writing a turn that has grown or may still grow, record the hash of its new section. After a
        # kill, the next run recognizes the section by that hash.
        growing: list[Digest] = []
        if digests and session.id:
            before = session.growing_in(project.root)
            growing = [digest for digest in digests[:-1] if digest.turn in before] + digests[-1:]
            for digest in growing:
                session.will_write(digest.turn, project.root, section_hash(digest.section))
            self.sessions.save(session)
        if digests:
            unindexed.mark(self.home, project.root)
            adopt_memory(project, self.home)
            journal = Journal(project, shared=self.settings.memory.shared, home=self.home)
            known = session.growing_in(project.root)
            if not is_live:  # an import brings back what is gone from the files, also a last turn
                known = {name: one._replace(is_written=False) for name, one in known.items()}
            written = journal.write(
                digests, known, lambda digest, day: self._will_write(project.root, digest.session, day)
            )
            unindexed.mark(self.home, project.root)  # a pass may have begun before the write
            outcome.written = len(written)
            outcome.projects.add(project.root)
            if is_live and self._wants_summary(session):
                self._queue_summary(journal, digests)
        if kept and self.settings.archive.enabled:
            self._archive.keep(kept, Path(session.transcript), self.redact, self._hidden)
        for digest in growing:
            session.has_written(digest.turn, project.root, section_hash(digest.section))
        if moves:
            session.has_read([turn.id for turn in turns])
            session.offset, session.size = turns[-1].start, turns[-1].end
        elif digests:
            ended = session.growing_in(project.root).keys() - {turns[-1].id}
            session.have_ended(ended, project.root)
        return outcome

    def _name_as_archived(self, copies: list[Turn]) -> None:
        """Give turns that a fork has copied the IDs that they have in the archive."""
        sessions = {anchors.safe(name) for turn in copies for name in (turn.origin, turn.session)}
        known = {one.uuid: one.id for name in sessions for one in self._archive.turns(name)}
        for turn in copies:
            turn.id = known.get(turn.uuid, turn.id)

    def _summaries(
        self, session: Session, project: Project, turn: Turn, is_wanted: Callable[[Turn], bool]
    ) -> list[Digest]:
        """Return the summaries that Claude Code wrote during a turn; none after a turn that is left out."""
        found = [
            one
            for one in compaction_digests(turn, self.redact)
            if not self._forgotten.covers(one.turn, project.root, turn.session, turn.time)
        ]
        if not found or not session.transcript:
            return []
        off = project.off_periods()
        hide = Hidden(self.settings.capture.exclude)
        for earlier in read_turns(open_transcript(Path(session.transcript), 0, hide)):
            if not is_wanted(earlier) or self._is_left_out_in_part(earlier, project, off):
                logger.info("session %s: skipped a summary of turns that are left out", session.id)
                return []
            if earlier.id == turn.id:
                break
        return found

    def _is_left_out_in_part(self, turn: Turn, project: Project, off: list[tuple[float, float]]) -> bool:
        if turn.is_private or skips(turn.prompt) or self._is_forgotten(turn, project):
            return True
        if self._hidden.excludes(turn.cwd, project.root) or _is_within(turn, off):
            return True
        results = (call.result or "" for call in turn.tools)
        if hid_private(turn.prompt) or any(map(hid_private, results)):
            return True
        given = (value for call in turn.tools for value in (*call.input.values(), call.result))
        return EXCLUDED in given

    @functools.cached_property
    def _forgotten(self) -> Forgotten:
        """The tombstones, read once: no process adds any while this one holds the capture lock."""
        return Tombstones(self.home).forgotten()

    def _is_forgotten(self, turn: Turn, project: Project) -> bool:
        forgotten = self._forgotten
        if forgotten.covers(turn.id, project.root, turn.session, turn.time):
            return True
        if forgotten.periods and not forgotten.keeps_elsewhere(turn.id):
            for root in self._roots_of(turn, project):
                if forgotten.covers(turn.id, root, turn.session, turn.time):
                    return True
        is_typed = not turn.prompt_id and not turn.uuid  # from Claude Code's history of prompts
        return is_typed and forgotten.covers_typed(turn.time)

    def _roots_of(self, turn: Turn, project: Project) -> set[str]:
        """Return earlier roots, and that of the turn's directory: its memory may be merged or shared here."""
        key = project.root, turn.cwd
        if key not in self._other_roots:
            roots = set(Registry.read(self.home).earlier_roots(project.root))
            self._other_roots[key] = roots | ({Project.containing(turn.cwd).root} if turn.cwd else set())
        return self._other_roots[key]

    def _wants_summary(self, session: Session) -> bool:
        """Claude Code, the default, must not send summaries to a party that has not seen the session."""
        chosen = self.settings.summarize
        is_other_party = session.elsewhere and chosen.provider == AUTO and chosen.is_on
        return chosen.mode != "off" and not is_other_party

    def _queue_summary(self, journal: Journal, digests: list[Digest]) -> None:
        queue = SummaryQueue(self.home)
        for session in {digest.session for digest in digests}:
            days = {journal.day_for(digest.day) for digest in digests if digest.session == session}
            try:
                queue.add(journal.project.root, session, days, time.time())
            except NewerFileError as error:  # only the summary is lost; the turns are written
                logger.warning("%s", error)

    def _transcript(self, session: Session) -> SessionFile:
        path = Path(session.transcript)
        if session.offset and is_there(path) and not self._is_at_checkpoint(path, session):
            session.read_again()
        return open_transcript(path, session.offset, self._hidden)

    def _is_at_checkpoint(self, path: Path, session: Session) -> bool:
        size = status_of(path).size
        if size <= session.offset or not session.recent:
            return size >= session.offset
        first = next(iter(open_transcript(path, session.offset)), None)
        if first is None or first.start != session.offset:
            return False
        if not (first.prompt_id or first.uuid):
            return True  # nothing to compare
        name = first.session or path.stem
        own = turn_id(name, "", first.uuid, "")  # of a command after `!`
        return session.recent[-1] in (own, turn_id(name, first.prompt_id, first.uuid, ""))


def adopt_memory(project: Project, home: Home) -> None:
    """Record, once for each project, that this home wrote the memory sections whose turns are archived.

    The memory may be older than the record of own entries (see `memkit.hook.entries`), or restored.
    """
    marker = Path(own_file(home, project.root)).with_suffix(".adopted")
    if marker.exists():
        return
    archive, journal = Archive(home), Journal(project)
    texts: list[str] = []
    try:
        for day in journal.days():
            content = journal.day(day)
            for session in content.sessions():
                turns = {turn.id for turn in archive.turns(session) if turn.project == project.root}
                for section in content.sections if turns else ():
                    if section.pairs.get("session") == session or section.pairs.get("turn") in turns:
                        texts.append(content.text(section))
    except MemkitError as error:  # then less of the memory is quoted; the next turn tries again
        logger.warning("cannot tell which entries of %s are own: %s", project.root, error)
        return
    note_own(home, project.root, "", "\n".join(texts))
    make_private_directory(home.projects)
    create_private(str(marker)).close()


def _is_known_answer(digest: Digest, project: Project) -> bool:
    """If Claude Code cut off a transcript's start, a turn without a prompt can be the end of a known one."""
    answer = _answer_in(digest.section)
    before = (date.fromisoformat(digest.day) - timedelta(days=1)).isoformat()
    journal = Journal(project)
    for day in journal.days() if answer else ():
        if day[:10] in (before, digest.day):  # also `.local` files
            content = journal.day(day)
            for turn in turns_of(content, digest.session):
                is_other = turn.section.pairs["turn"] != digest.turn
                known = _answer_in(content.text(turn.section))
                if is_other and known and is_same_cut(known, answer):
                    return True
    return False


def _is_within(turn: Turn, periods: list[tuple[float, float]]) -> bool:
    began = turn.time.timestamp() if turn.time else 0.0
    return any(start <= began < end for start, end in periods)


def _answer_in(section: str) -> str:
    return section.partition("\n**Answered**")[2].strip()


def _goes_on(turn: Turn, path: Path, now: float) -> bool:
    """Return whether a last turn has no answer, and its agent wrote something shortly before `now`."""
    is_answered = turn.interrupted or bool(turn.answer and not turn.worked_since)
    written = max(status_of(path).modified / 1e9, turn.finished.timestamp() if turn.finished else 0.0)
    return not is_answered and abs(now - written) < QUIET_SECONDS


def _batches(turns: Iterable[Turn]) -> Iterator[list[Turn]]:
    iterator = iter(turns)
    while batch := list(islice(iterator, BATCH_TURNS)):
        yield batch
