"""Where the recorded transcripts lie."""

from __future__ import annotations

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]

RECORDED = REPOSITORY / "tests" / "fixtures" / "transcripts"
"""Made by the real client against a scripted Messages API; attachments emptied, paths replaced."""
