"""Fixtures of the summary tests."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def no_waiting_for_disks(monkeypatch: pytest.MonkeyPatch) -> None:
    """What survives a power failure is not the subject here."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
