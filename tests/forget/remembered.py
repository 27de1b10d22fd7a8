"""A memory in which a word stands that is to be forgotten, and who still holds it."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from memkit.capture.capture import Capture, CaptureOutcome
from memkit.forget.erase import forget
from memkit.forget.locations import Locations, find_locations
from memkit.forget.selection import ForgetSelection, SelectionFinder
from memkit.index import index_lock, sync_project
from memkit.journal.journal import Journal
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.settings.load import Settings
from tests.builders import Lines
from tests.capture.stage import Stage, prompt_id
from tests.raw_bytes import files_holding

WORD = "zqhorseradishzq"

T = TypeVar("T")


class Prepared(Generic[T]):
    """Something built once with its files, which each test gets as it was, at the same path."""

    def __init__(self, base: Path, build: Callable[[Path], T]) -> None:
        self._work, self._saved = base / "work", base / "saved"
        self._work.mkdir()
        self._built = build(self._work)
        shutil.copytree(self._work, self._saved, symlinks=True)

    def copy(self) -> T:
        shutil.rmtree(self._work)
        shutil.copytree(self._saved, self._work, symlinks=True)
        return copy.deepcopy(self._built)


def ask(lines: Lines, number: int, word: str) -> Lines:
    """A turn that says `word` wherever a turn can."""
    lines.prompt(f"Where is the {word} kept, number {number}?", prompt_id(number))
    lines.call("Bash", f"t{number}", command=f"grep -r {word} .")
    lines.result(f"t{number}", f"a.txt: {word}\nb.txt: {word.upper()}")
    return lines.answer(f"Below the stairs.\n\nThe {word} stands there, and\nnothing else.")


def index_with_another_file(project: Project, home: Home, settings: Settings) -> None:
    """Index anew with another file: then a segment holds the text of both, and stays when one is deleted."""
    Path(project.memory, "zz-other.md").write_text("# Another\n\nIt stays.\n")
    shutil.rmtree(Path(home.index, "snapshots"), ignore_errors=True)
    with index_lock(home, 5):
        sync_project(project, home, settings)


class Remembered:
    """Three turns of one session, imported and indexed; the second says `WORD`."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.settings = Settings()
        self.journal = Journal(stage.project)
        lines = ask(ask(ask(Lines(), 1, "carrot"), 2, WORD), 3, "parsnip")
        stage.write(lines)
        self.take_in()

    def take_in(self) -> CaptureOutcome:
        """Import the transcript and index."""
        with index_lock(self.stage.home, 5):
            capture = Capture(self.stage.home, self.settings)
            captured = capture.import_file(self.stage.transcript, self.stage.project)
            self.sync()
        return captured

    def sync(self) -> None:
        sync_project(self.stage.project, self.stage.home, self.settings)

    @property
    def turns(self) -> list[str]:
        """The ids of the turns in the journal."""
        return [
            section.pairs["turn"]
            for day in self.journal.days()
            for section in self.journal.day(day).sections
            if "turn" in section.pairs
        ]

    @property
    def day(self) -> Path:
        """The one day there is."""
        (day,) = self.journal.days()
        return self.journal.path(day)

    def select(self, *names: str) -> ForgetSelection:
        return SelectionFinder(self.stage.project, self.stage.home, self.settings).select(names)

    def find(self, selection: ForgetSelection) -> Locations:
        return find_locations(self.stage.home, self.stage.project, selection)

    def forget(self, selection: ForgetSelection) -> list[str]:
        with index_lock(self.stage.home, 5):
            home, project = self.stage.home, self.stage.project
            return forget(home, project, selection, lambda _: self.settings)[1]

    def holders(self, word: str = WORD) -> list[str]:
        """The files that hold the word in any case, with zstd frames opened; the transcript is the client's."""
        return files_holding(self.stage.root, word, lambda path: path.suffix == ".jsonl")
