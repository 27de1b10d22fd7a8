"""The summary that Claude Code writes when it compacts a conversation is kept with the session."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memkit.archive.archive import Archive
from memkit.capture.capture import Capture
from memkit.journal.journal import Journal
from memkit.journal.turn_parts import COMPACTION_TITLE
from memkit.settings import CaptureSettings
from memkit.settings.load import Settings
from tests.builders import SESSION, Lines
from tests.capture.stage import NOW, Stage, prompt_id

SUMMARY = """This session is being continued from a previous conversation that ran out of context. The summary below \
covers the earlier portion of the conversation.

<system-reminder>
<tools-used-before-summary></tools-used-before-summary>
</system-reminder>
Summary:
The staging gateway moved to port 7443. PASSWORD=hunter2hunter2

If you need specific details from before compaction (like exact code snippets), read the full transcript at: /x"""


def compacted(lines: Lines) -> Lines:
    return lines.add("system", subtype="compact_boundary").prompt(SUMMARY, "p", isCompactSummary=True)


class Session:
    """A session that is compacted in its second turn."""

    def __init__(self, root: Path, first: str = "Move the gateway.", settings: Settings | None = None) -> None:
        self.stage = Stage(root)
        self.settings = settings or Settings()
        self.lines = Lines().prompt(first, prompt_id(1))
        self.lines.call("Read", "r", file_path=f"{root}/project/secret/a.txt").result("r", "x").answer("Moved.")
        compacted(self.lines.prompt("Now the docs.", prompt_id(2)).answer("I begin.")).answer("Done.")
        for entry in self.lines.entries:
            entry["cwd"] = self.stage.project.root

    def end(self) -> str:
        """The day file after the session's end."""
        self.stage.transcript.write_text("".join(json.dumps(one) + "\n" for one in self.lines.entries))
        record = self.stage.record("SessionEnd")
        Capture(self.stage.home, self.settings).handle(record, self.stage.project, NOW)
        journal = Journal(self.stage.project)
        return "".join(journal.text(f"{day}.md") for day in journal.days())


def test_it_is_a_section_of_the_session(tmp_path: Path) -> None:
    session = Session(tmp_path)
    text = session.end()
    assert text.count(COMPACTION_TITLE) == 1
    section = text[text.rindex(f"{COMPACTION_TITLE} <!-- turn:") :]
    assert "\n**Answered** The staging gateway moved to port 7443. PASSWORD=[redacted" in section
    assert "hunter2" not in text
    for noise in ("being continued", "specific details", "system-reminder", "Summary:"):
        assert noise not in text
    assert len(list(Archive(session.stage.home).turns(SESSION))) == 2
    assert session.end() == text  # once


@pytest.mark.parametrize("first", ["Move the gateway. #skip", "<private>Move it.", "Move <private>it</private> now."])
def test_it_is_left_out_with_anything_private(tmp_path: Path, first: str) -> None:
    assert COMPACTION_TITLE not in Session(tmp_path, first).end()
    settings = Settings(capture=CaptureSettings(exclude=("secret/",)))
    (tmp_path / "excluded").mkdir()
    text = Session(tmp_path / "excluded", settings=settings).end()
    assert "Done." in text
    assert COMPACTION_TITLE not in text
