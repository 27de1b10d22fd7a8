"""An audit finds old secrets and redacts them in every file."""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from memkit.capture.capture import Capture
from memkit.forget.audit import Audit, AuditReport
from memkit.index import index_lock, sync
from memkit.ipc import spool
from memkit.journal.day_overview import without_overview
from memkit.journal.day_summaries import turns_of
from memkit.journal.extracts import extract_line, is_unedited
from memkit.journal.journal import Journal
from memkit.projects.project import Project
from memkit.settings.load import Settings
from tests.builders import Lines
from tests.capture.places import RECORDED
from tests.capture.stage import Stage, prompt_id
from tests.ci import every
from tests.forget.remembered import index_with_another_file
from tests.raw_bytes import files_holding

WORD = "zqhorseradishzq"
"""No rule knows it: a secret that the user's own pattern makes one."""

PATTERN: dict[str, Any] = {"capture": {"redact": ["(?i)zqhorseradishzq"]}}


class Audited:
    """A stage on which something was remembered before the rules changed."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.settings = Settings()

    def remember(self, lines: Lines) -> None:
        self.stage.write(lines)
        with index_lock(self.stage.home, 5):
            capture = Capture(self.stage.home, self.settings)
            capture.import_file(self.stage.transcript, self.stage.project)
            sync.sync_project(self.stage.project, self.stage.home, self.settings)

    def add_pattern(self) -> None:
        self.settings = msgspec.convert(PATTERN, Settings)

    def audit(self, project: Project | None = None) -> Audit:
        project = project or self.stage.project
        return Audit(self.stage.home, project, lambda _: self.settings, logging.info)

    def search(self) -> AuditReport:
        return self.audit().search()

    def fix(self, project: Project | None = None) -> AuditReport:
        with index_lock(self.stage.home, 5):
            return self.audit(project).fix()

    def holders(self, word: str = WORD) -> list[str]:
        """The files that hold the word in any case, with zstd frames opened; the transcript is the client's."""
        return files_holding(self.stage.root, word, lambda path: path == self.stage.transcript)


@pytest.fixture
def audited(stage: Stage) -> Audited:
    return Audited(stage)


@pytest.fixture
def heard(prepare: Any) -> Audited:
    """A turn that says `WORD` was remembered."""

    def build(root: Path) -> Audited:
        audited = Audited(Stage(root))
        audited.remember(spoken())
        return audited

    found: Audited = prepare("heard", build)
    return found


def spoken(number: int = 1) -> Lines:
    lines = Lines().prompt(f"Where is the {WORD} kept?", prompt_id(number))
    lines.call("Bash", "t1", command=f"grep -r {WORD} .")
    lines.result("t1", f"a.txt: {WORD}\nb.txt: {WORD.upper()}")
    return lines.answer(f"Below the stairs.\n\nThe {WORD} stands there, and\nnothing else.")


def test_nothing_is_found_in_what_was_just_remembered(audited: Audited) -> None:
    for recorded in every(3, sorted(RECORDED.glob("*.jsonl"))):
        audited.stage.transcript = audited.stage.root / recorded.name
        audited.stage.transcript.write_bytes(recorded.read_bytes())
        with index_lock(audited.stage.home, 5):
            capture = Capture(audited.stage.home, audited.settings)
            capture.import_file(audited.stage.transcript, audited.stage.project)
    with index_lock(audited.stage.home, 5):
        sync.sync_project(audited.stage.project, audited.stage.home, audited.settings)
    report = audited.search()
    assert (report.found, report.problems) == ([], [])
    journal = audited.stage.journal
    assert audited.fix().remaining == []
    assert audited.stage.journal == journal


def test_a_finding_has_place_and_kind_but_not_the_secret(heard: Audited) -> None:
    assert heard.search().found == []
    heard.add_pattern()
    before = heard.holders()
    report = heard.search()
    assert heard.holders() == before
    assert {finding.where for finding in report.found} == {"journal", "archive", "index"}
    assert {finding.kind for finding in report.found} == {"custom"}
    assert WORD not in repr(report).lower()
    (day,) = Path(heard.stage.project.memory).glob("*.md")
    lines = day.read_text().split("\n")
    told = [finding.line for finding in report.found if finding.where == "journal"]
    assert sorted(set(told)) == [n for n, line in enumerate(lines, 1) if WORD in line.lower()]
    assert all(finding.place == str(day) for finding in report.found if finding.where == "journal")


def test_no_file_holds_it_after_a_fix(heard: Audited) -> None:
    heard.remember(Lines().prompt("What else?", prompt_id(2)).answer("Nothing of the kind. " * 20))
    heard.remember(spoken())
    home = heard.stage.home
    for folder in ("failed", "claimed", "new"):
        event = {"event": "Stop", "project": heard.stage.project.root, "error": f"a {WORD}"}
        name = spool.put(home, event)
        Path(home.spool, "new", name).rename(Path(home.spool, folder, name))
    Path(home.spool, "failed", "broken.json").write_text(f'{{"prompt": "{WORD}"')
    Path(home.sessions, "damaged.json").write_text(f"{{{WORD}")
    for directory in (heard.stage.project.memory, home.sessions):
        Path(directory, ".abcd_123.tmp").write_text(f"# A day\n\nthe {WORD}\n")  # of a killed writer
    Path(home.log).mkdir()
    Path(home.log, "hooks.log").write_text(json.dumps({"error": f"no {WORD}"}) + "\n")
    Path(home.log, "memkit.log").write_text(f"Traceback\n  {WORD}\nend\n")
    stray = Path(home.index, "chroma", "stray")
    stray.mkdir()
    (stray / "chroma.sqlite3").write_text(WORD)
    Path(next(Path(home.index, "snapshots").iterdir()), "left-by-a-kill").mkdir()

    heard.add_pattern()
    report = heard.fix()
    assert {finding.where for finding in report.found} == {
        "journal", "archive", "index", "spool", "session", "log"
    }  # fmt: skip
    assert (report.remaining, report.problems) == ([], [])
    assert heard.holders() == []
    assert json.loads(Path(home.log, "hooks.log").read_text()) == {"error": "no [redacted:custom]"}
    assert Path(home.log, "memkit.log").read_text() == "Traceback\n  [redacted:custom]\nend\n"
    assert spool.failed(home)[0].record["error"] == "a [redacted:custom]"

    journal = heard.stage.journal
    assert "[redacted:custom]" in journal
    assert heard.fix().found == []
    assert heard.stage.journal == journal


def test_text_deleted_by_hand_is_erased_from_the_index(heard: Audited) -> None:
    index_with_another_file(heard.stage.project, heard.stage.home, heard.settings)
    for path in Path(heard.stage.project.memory).glob("*.md"):
        path.write_text(re.sub(WORD, "radish", path.read_text(), flags=re.IGNORECASE))
    with index_lock(heard.stage.home, 5):
        sync.sync_project(heard.stage.project, heard.stage.home, heard.settings)
    assert any(name.endswith(".segment") for name in heard.holders())
    heard.add_pattern()
    assert "index" in {finding.where for finding in heard.search().found}
    heard.fix()
    assert heard.holders() == []


def test_the_index_of_another_model_is_dropped(heard: Audited) -> None:
    (kept,) = Path(heard.stage.home.index, "snapshots").iterdir()
    other = kept.with_name(f"{kept.name[:-8]}01234567")
    kept.rename(other)
    with index_lock(heard.stage.home, 5):
        sync.sync_project(heard.stage.project, heard.stage.home, heard.settings)
    heard.add_pattern()
    heard.fix()
    assert not other.exists()
    assert kept.is_dir()
    assert heard.holders() == []


def test_hand_edits_and_foreign_files_stay(heard: Audited) -> None:
    (day,) = Path(heard.stage.project.memory).glob("*.md")
    text = day.read_text().replace("Below the stairs", "In the <b>attic</b>")
    day.write_text(f"{text}\nMy own note <private>on\n\nthis</private> here, and {WORD}.\n")
    docs = Path(heard.stage.project.memory, "notes.md")
    docs.write_text(f"# Notes\n\nThe {WORD}.\n")
    heard.add_pattern()
    report = heard.fix()
    expected = re.sub(f"(?i){WORD}", "[redacted:custom]", text)
    note = "\nMy own note <private>on\n\nthis</private> here, and [redacted:custom].\n"
    assert without_overview(day.read_text()) == without_overview(expected) + note
    assert docs.read_text() == f"# Notes\n\nThe {WORD}.\n"
    assert [(one.where, one.line) for one in report.remaining if one.where != "index"] == [("markdown", 3)]
    assert {one.place for one in report.remaining if one.where == "index"} == {".memkit/memory/notes.md"}


@pytest.mark.parametrize("is_edited", [False, True])
def test_a_redacted_turn_can_still_grow_unless_a_person_edited_it(audited: Audited, is_edited: bool) -> None:
    lines = spoken()
    audited.remember(lines)
    (day,) = Path(audited.stage.project.memory).glob("*.md")
    if is_edited:
        day.write_text(day.read_text().replace("Below", "Just below"))
    audited.add_pattern()
    audited.fix()
    redacted = day.read_text()
    audited.remember(lines.answer("One more thing: the cellar."))
    assert (day.read_text() == redacted) == is_edited == ("Just below" in redacted)
    assert ("One more thing: the cellar." in audited.stage.journal) != is_edited
    assert audited.stage.journal.count("### ") == 1
    assert audited.holders() == []


@pytest.mark.parametrize("step", ["journal", "archive", "index"])
def test_the_next_fix_finishes_a_killed_one(
    heard: Audited, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    index_with_another_file(heard.stage.project, heard.stage.home, heard.settings)
    heard.add_pattern()
    where = {
        "journal": "memkit.journal.files.MemoryDirectory._put",
        "archive": "memkit.archive.archive.Archive.rewrite",
        "index": "memkit.forget.erase.erase_dead",
    }

    def killed(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(where[step], killed)
        heard.fix()
    assert heard.holders() != []
    heard.fix()
    assert heard.holders() == []
    heard.remember(spoken().answer("And the cellar."))
    assert "And the cellar." in heard.stage.journal


def test_only_the_own_project_is_changed_unless_all_are(heard: Audited) -> None:
    other = Project(str(heard.stage.root / "other"))
    Path(other.root).mkdir()
    heard.add_pattern()
    assert heard.fix(other).found == []
    assert heard.holders() != []
    with index_lock(heard.stage.home, 5):
        everything = Audit(heard.stage.home, None, lambda _: heard.settings, logging.info)
        assert everything.fix().remaining == []
    assert heard.holders() == []


def test_a_redacted_line_of_an_extract_is_still_one(heard: Audited) -> None:
    journal = Journal(heard.stage.project)
    (day,) = journal.days()
    (session,) = journal.day(day).sessions()
    turn = turns_of(journal.day(day), session)[0].section.pairs["turn"]
    journal.summarize(day, [turn], [extract_line(f"Edited: {WORD}.py", [turn])], key="extract")
    heard.add_pattern()
    assert heard.fix().remaining == []
    (line,) = [line for line in journal.text(f"{day}.md").split("\n") if "by:extract" in line]
    assert line.startswith("- Edited: [redacted:custom].py <!--")
    assert is_unedited(line)
