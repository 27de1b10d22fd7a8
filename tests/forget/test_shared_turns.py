"""A project keeps the turns that another project forgets."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from memkit.archive.archive import Archive
from memkit.browse.transcript import find_original
from memkit.capture.capture import Capture
from memkit.forget.erase import forget
from memkit.forget.locations import find_locations
from memkit.forget.selection import ForgetSelection, of_days, of_everything, of_session
from memkit.index import index_lock, sync_project
from memkit.journal.journal import Journal
from memkit.maintenance.merge import merge, remove_merged
from memkit.privacy.tombstones import Tombstones
from memkit.projects.project import Project
from tests.builders import SESSION, make_note
from tests.capture.stage import NOW, Stage, prompt_id
from tests.forget.remembered import WORD, Remembered

LATER = NOW + 86_400


class Shared:
    """A second project that holds what `remembered` does."""

    def __init__(self, remembered: Remembered, how: str) -> None:
        self.remembered = remembered
        self.home = remembered.stage.home
        self.mine = remembered.stage.project
        path = remembered.stage.root / "other"
        path.mkdir()
        self.other = Project(str(path))
        if how == "merged":
            with index_lock(self.home, 5):
                merge(self.mine, self.other, self.home, Journal(self.other))
        else:
            self.take_in(self.other)
        for project in (self.mine, self.other):
            sync_project(project, self.home, remembered.settings)

    def take_in(self, project: Project) -> int:
        with index_lock(self.home, 5):
            capture = Capture(self.home, self.remembered.settings)
            transcript = self.remembered.stage.transcript
            return capture.import_file(transcript, project).written

    def files(self, project: Project) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in sorted(Path(project.memory).glob("*.md"))}

    def forget(self, project: Project, selection: ForgetSelection) -> None:
        with index_lock(self.home, 5):
            assert forget(self.home, project, selection, lambda _: self.remembered.settings)[1] == []


@pytest.fixture(params=["merged", "imported"])
def shared(prepare: Any, request: pytest.FixtureRequest) -> Shared:
    def build(root: Path) -> Shared:
        remembered = Remembered(Stage(root))
        note = make_note("The rutabaga is a note.", [], datetime.fromtimestamp(NOW).astimezone(), str)
        remembered.journal.add_note(note)
        return Shared(remembered, request.param)

    found: Shared = prepare(request.param, build)
    return found


@pytest.mark.parametrize("whose", ["mine", "other"])
@pytest.mark.parametrize("what", ["everything", "days"])
def test_a_project_forgets_only_its_own_copy(shared: Shared, whose: str, what: str) -> None:
    mine, other = shared.mine, shared.other
    forgetting, keeping = (mine, other) if whose == "mine" else (other, mine)
    before = shared.files(keeping)
    if what == "everything":
        selection = of_everything(forgetting, shared.home, LATER)
    else:
        selection = of_days(forgetting, shared.home, None, None, LATER)
    found = find_locations(shared.home, forgetting, selection)
    assert found.by_project.keys() == {forgetting.root}
    assert {root for root, names in found.shared.items() if len(names) >= 3} == {keeping.root}
    assert found.archived == {}
    shared.forget(forgetting, selection)
    assert shared.files(forgetting) == {}
    assert shared.files(keeping) == before
    archived = Archive(shared.home).turns(SESSION)
    assert [turn.project for turn in archived] == [keeping.root] * 3
    original = find_original(shared.home, SESSION)
    assert original is not None
    assert any(WORD in message.text for message in original.messages(str))
    # It does not come back where it was forgotten, and it does where it was not.
    assert shared.take_in(forgetting) == 0
    for path in [*Path(keeping.memory).glob("*.md"), *Path(shared.home.sessions).iterdir()]:
        path.unlink()
    assert shared.take_in(keeping) == 3
    again = of_everything(forgetting, shared.home, LATER)
    assert not find_locations(shared.home, forgetting, again).archived


def test_a_merge_does_not_bring_it_back_and_its_source_stays(shared: Shared) -> None:
    shared.forget(shared.other, of_everything(shared.other, shared.home, LATER))
    with index_lock(shared.home, 5):
        assert merge(shared.mine, shared.other, shared.home, Journal(shared.other)).turns == 0
    remove_merged(shared.mine, shared.other, shared.home)
    assert WORD.encode() in b"".join(shared.files(shared.mine).values())


def test_everywhere_erases_both_copies(shared: Shared) -> None:
    selection = of_everything(shared.mine, shared.home, LATER)
    selection.everywhere = True
    found = find_locations(shared.home, shared.mine, selection)
    assert found.by_project.keys() == {shared.mine.root, shared.other.root}
    assert found.shared == {}
    shared.forget(shared.mine, selection)
    assert shared.remembered.holders() == []
    assert "turn:" not in "".join(data.decode() for data in shared.files(shared.other).values())
    assert shared.take_in(shared.other) == 0


def test_the_last_copy_is_erased_from_the_archive(shared: Shared) -> None:
    for project in (shared.mine, shared.other):
        shared.forget(project, of_everything(project, shared.home, LATER))
    assert shared.remembered.holders() == []
    assert shared.remembered.holders("rutabaga") == []
    assert Tombstones(shared.home).forgotten().turns
    assert shared.take_in(shared.other) == 0


def test_a_session_is_erased_from_every_project(shared: Shared) -> None:
    selection = of_session(shared.mine, shared.home, SESSION, LATER)
    found = find_locations(shared.home, shared.mine, selection)
    assert found.by_project.keys() == {shared.mine.root, shared.other.root}
    shared.forget(shared.mine, selection)
    assert shared.remembered.holders() == []


def test_other_turns_of_the_project_are_erased(shared: Shared) -> None:
    stage = shared.remembered.stage
    lines = stage.transcript.read_text()
    own = lines.splitlines()[0].replace(prompt_id(1), prompt_id(77)).replace("carrot", "celeriac")
    stage.transcript.write_text(lines + own.replace("00000000-aaaa", "99999999-aaaa") + "\n")
    assert shared.take_in(shared.mine) == 1
    before = shared.files(shared.other)
    shared.forget(shared.mine, of_everything(shared.mine, shared.home, LATER))
    assert shared.remembered.holders("celeriac") == []
    assert shared.files(shared.other) == before
    assert len(Archive(shared.home).turns(SESSION)) == 3
