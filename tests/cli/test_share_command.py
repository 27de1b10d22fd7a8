"""`memkit share`, `unshare`, and `projects trust`, and what other commands say of shared entries."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from memkit.browse import git_marks
from memkit.maintenance.uninstall import find_owned_files
from memkit.projects import team_files
from memkit.projects.team import author_folder
from tests.cli.conftest import Run, on_terminal
from tests.maintenance.clones import Person

TODAY = date.today().isoformat()


@pytest.fixture
def alex(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Person:
    monkeypatch.setattr(git_marks, "SECONDS", 30.0)
    return Person.at(tmp_path / "alex", "Alex Kim")


@pytest.fixture
def jo(alex: Person, tmp_path: Path) -> Person:
    """Somebody who has pulled what Alex shared, and trusts it."""
    alex.share("The staging gateway listens on port 7443.")
    jo = Person.at(tmp_path / "jo", "Jo Doe", alex.root)
    jo.memory.trust_team()
    return jo


def test_share_and_unshare(run: Run, alex: Person) -> None:
    name = alex.note("The staging gateway listens on port 7443.")
    dry = run(alex, "share", name, "--dry-run")
    assert "Note: The staging gateway listens on port 7443." in dry.output
    assert not alex.files
    said = run(alex, "share", name).output
    assert said == f"1 entry added to {alex.files[0]}. Commit the file to share it.\n"
    assert dry.output.partition("\n\n")[2].strip() == alex.files[0].read_text().strip()
    assert run(alex, "share", name).output == "Nothing new: 1 entry shared already.\n"
    assert run(alex, "share", name, "--json").json["already_shared"] == 1
    private = alex.note("Ask jo.doe@corp-mail.example.")
    refused = run(alex, "share", private).complaint
    assert refused.startswith(f"memkit: not shared: it contains an e-mail address in line 1 of {private}. ")
    assert "jo.doe" not in refused
    alex.commit("Share")
    assert "to be removed" in run(alex, "unshare", name, "--dry-run").output
    said = run(alex, "unshare", name).output
    assert "1 entry removed from the working tree.\nGit's history keeps them" in said
    assert not alex.files
    assert "shares nothing with the id" in run(alex, "unshare", name).complaint


def test_trust_is_for_a_person_alone(run: Run, alex: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDECODE", "1")
    assert "in a terminal of your own" in run(alex, "projects", "trust").complaint
    assert not team_files.is_trusted(alex.home, str(alex.root))
    assert run(alex, "projects", "distrust").status == 0


def test_a_search_that_finds_nothing_names_a_memory_that_is_not_trusted(run: Run, jo: Person) -> None:
    assert run(jo, "search", "gateway port").errors == ""
    jo.memory.trust_team(is_trusted=False)
    found = run(jo, "search", "gateway port")
    assert "7443" not in found.output
    assert "memkit: 1 person shares a memory in this repository" in found.errors
    assert "`memkit projects trust` in a terminal of your own" in found.errors
    assert run(jo, "search", "--json", "gateway port").errors == ""


def test_results_name_their_author(run: Run, jo: Person) -> None:
    author = author_folder(str(jo.root)).replace("jo-doe", "alex-kim")[:9]
    line = f"shared by {author}"
    for arguments in (("search", "gateway port"), ("search", "--full", "gateway port")):
        assert line in run(jo, *arguments).output
    found = run(jo, "search", "--json", "gateway port").json["results"][0]
    assert found["kind"] == "team"
    assert found["team"]["by"] == "Alex Kim"
    assert found["team"]["commit"] == jo.git("rev-parse", "HEAD")[:12]
    assert line in run(jo, "expand", found["id"]).output
    recalled = run(jo, "recall", "--stdin", stdin=b"gateway port").output
    assert ' shared_by="alex-kim-' in recalled
    assert "Those with shared_by are the words of other people" in recalled
    assert line in run(jo, "search", "--kind", "team", "gateway").output
    assert "belongs to the repository" in run(jo, "forget", "--yes", found["id"]).complaint


def test_what_is_forgotten_is_no_longer_shared(run: Run, alex: Person) -> None:
    kept = alex.share("Invoices are immutable.")
    name = alex.share("The staging gateway listens on port 7443.")
    other = alex.root / ".memkit" / "team" / "jo-doe-1234" / "2026-11-20.md"
    other.parent.mkdir(parents=True)
    text = f"# 2026-11-20\n\n## Port <!-- shared:0badcafe origin:{name} -->\n\n7443\n"
    other.write_text(text)
    said = run(alex, "forget", name, "--dry-run").output
    assert "1 shared copy to be removed from the working tree. Git's history keeps" in said
    found = run(alex, "forget", name, "--yes", "--json").json
    (path,) = [one for one in alex.files if one != other]
    assert [one["path"] for one in found["team"]] == [str(path)]
    assert "7443" not in path.read_text()
    assert f"origin:{kept}" in path.read_text()
    assert run(alex, "forget", "--everything", "--yes").status == 0
    assert other.read_text() == text  # of somebody else


def test_audit_doctor_backup_and_uninstall_know_the_team(run: Run, alex: Person, tmp_path: Path) -> None:
    shared = alex.root / ".memkit" / "team"
    path = shared / "jo-doe-1234" / "2026-11-20.md"
    path.parent.mkdir(parents=True)
    path.write_text("# 2026-11-20\n\n## Key\n\nAKIAIOSFODNN7EXAMPLQ and password = hunter2hunter2\n")
    found = run(alex, "audit", "--json").json["findings"]
    assert {one["place"] for one in found} == {str(path)}
    run(alex, "audit", "--fix")
    assert "hunter2hunter2" in path.read_text()
    path.write_text("<<<<<<< HEAD\n# 2026-11-20\n=======\n>>>>>>> other\n")
    codes = [one["code"] for one in run(alex, "doctor", "--json").json["findings"]]
    assert {"team-file", "team-not-trusted"} <= set(codes)
    alex.memory.trust_team()
    codes = [one["code"] for one in run(alex, "doctor", "--json").json["findings"]]
    assert "team-not-trusted" not in codes
    assert run(alex, "backup", str(tmp_path / "backup.tar.zst")).status == 0
    own = find_owned_files(alex.home, [alex.memory.project], keep_memory=False, everything=True)
    assert (shared, "it belongs to the repository") in own.kept
    assert shared not in own.removed
    assert alex.root / ".git" / team_files.TOKEN_FILE in own.removed


def test_trust_asks_on_a_terminal(run: Run, jo: Person) -> None:
    jo.memory.trust_team(is_trusted=False)
    refused = run(jo, "projects", "trust")
    assert "there is no terminal to ask on" in refused.complaint
    asked = on_terminal(jo, "projects", "trust", answer="n\n", status=1)
    assert "Search what the default branch of its upstream has" in asked
    assert "Alex Kim, alex-kim-" in asked
    assert not team_files.is_trusted(jo.home, str(jo.root))
    on_terminal(jo, "projects", "trust", answer="y\n")
    assert team_files.is_trusted(jo.home, str(jo.root))
