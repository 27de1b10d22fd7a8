"""Makes one call of a burst of changes."""

from __future__ import annotations


class Debouncer:
    """Gathers changes by key until a key is quiet, or has waited for long enough.

    It knows no clock: every call says what time it is, in seconds that never go back.
    """

    def __init__(self, quiet_seconds: float, longest_seconds: float) -> None:
        """A key is due `quiet_seconds` after its last change, but `longest_seconds` after its first."""
        self._quiet_seconds = quiet_seconds
        self._longest_seconds = longest_seconds
        self._bursts: dict[str, tuple[float, float]] = {}

    def note(self, key: str, now: float) -> None:
        """There was a change of `key`."""
        first, _ = self._bursts.get(key, (now, now))
        self._bursts[key] = (first, now)

    def drop(self, key: str) -> None:
        """Forget what was noted of `key`."""
        self._bursts.pop(key, None)

    def take(self, now: float) -> list[str]:
        """The keys that are due, by their first change; a change from here on begins a new burst."""
        due = sorted((self._bursts[key][0], key) for key in self._bursts if self._due(key) <= now)
        for _, key in due:
            del self._bursts[key]
        return [key for _, key in due]

    def next_due(self) -> float | None:
        """When the next key is due if nothing else happens; None if nothing waits."""
        return min(map(self._due, self._bursts), default=None)

    def _due(self, key: str) -> float:
        first, last = self._bursts[key]
        return min(last + self._quiet_seconds, first + self._longest_seconds)
