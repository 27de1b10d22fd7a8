"""The summaries that Claude Code writes when it compacts a conversation, as its transcripts have them."""

from __future__ import annotations

import re

from memkit.agents.claude_code.transcript import TranscriptEntry
from memkit.conversation.turn import Compaction

_REMINDER = re.compile(r"<system-reminder>(?:(?!<system-reminder>).)*?</system-reminder>", re.DOTALL)
_ANALYSIS = re.compile(r"<analysis>(?:(?!<analysis>).)*?</analysis>", re.DOTALL)
_OPENING = re.compile(
    r"\A\s*This session is being continued from a previous conversation[^\n]*\n+"
    r"(?:(?:Summary|Analysis):\s*\n)?"
)
_CLOSING = re.compile(
    r"(?<!\n)\n+(?:If you need specific details from before compaction"
    r"|Please continue the conversation from where|Continue the conversation from where"
    r"|Recent messages are preserved)[^\n]*(?:\n.*)?\Z",
    re.DOTALL,
)


def read_compaction(entry: TranscriptEntry) -> Compaction | None:
    """Return the summary in an entry, without what Claude Code says around it; None if there is none."""
    if not entry.is_compact_summary:
        return None
    text = _OPENING.sub("", _ANALYSIS.sub("", _REMINDER.sub("", entry.text)).lstrip())
    text = re.sub(r"</?summary>", "", _CLOSING.sub("", text)).removeprefix("Summary:").strip()
    return Compaction(entry.uuid, entry.time, text) if text else None
