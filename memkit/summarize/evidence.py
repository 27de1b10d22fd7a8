"""All that is kept of a turn, as text: what a bullet about it is held against."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Sequence

from memkit.archive.archive import Archive
from memkit.archive.turn import ArchivedTurn
from memkit.errors import ArchiveError
from memkit.journal.journal import Journal
from memkit.summarize.segments import Segment

logger = logging.getLogger(__name__)


def evidence_for(
    journal: Journal, archive: Archive, segments: Sequence[Segment]
) -> Callable[[str], str]:
    """A function that gives all that is kept of a turn of these segments. It raises `JournalError`."""
    kept: dict[tuple[str, str], _Evidence] = {}
    place_of = {turn.id: segment for segment in segments for turn in segment.turns}

    def evidence(turn: str) -> str:
        segment = place_of[turn]
        key = (segment.session, segment.day)
        if key not in kept:
            kept[key] = _Evidence(journal, archive, *key)
        return kept[key].of(turn)

    return evidence


class _Evidence:
    """The turns of a session on one day: their digests, and the exchanges if they are archived."""

    def __init__(self, journal: Journal, archive: Archive, session: str, day: str) -> None:
        self._content = journal.day(day)
        self._day = day
        self._archive = archive
        self._session = session

    def of(self, turn: str) -> str:
        """All that is kept of a turn."""
        parts = [self._day]
        section = self._content.find_turn(turn)
        if section is not None:
            parts.append(self._content.text(section))
        archived = self._archived.get(turn)
        if archived is not None:
            parts += [text for message in archived.messages for text in message.texts()]
        return "\n".join(parts)

    @functools.cached_property
    def _archived(self) -> dict[str, ArchivedTurn]:
        try:
            return {turn.id: turn for turn in self._archive.turns(self._session)}
        except ArchiveError as error:  # the digests alone are stricter proof
            logger.warning("%s", error)
            return {}
