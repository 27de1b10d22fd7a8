"""A value that a setting cannot have."""

from __future__ import annotations


class SettingError(ValueError):
    """A value that no setting can have; `name` is the field's, "" if several do not go together."""

    def __init__(self, reason: str, name: str = "") -> None:
        super().__init__(reason)
        self.name = name
