"""Whether a session lies in a period that is forgotten."""

from __future__ import annotations

from memkit import anchors
from memkit.capture.sessions import Session
from memkit.privacy.tombstones import Forgotten


def is_of_period(state: Session, forgotten: Forgotten) -> bool:
    """Whether a period of what is forgotten is one of this session or its project."""
    return any(
        period.project in ("", state.project) and period.session in ("", anchors.safe(state.id))
        for period in forgotten.periods
    )
