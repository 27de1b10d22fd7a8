"""`memkit expand`, `transcript` and `import`: from a result down to the original exchange."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from memkit.archive.archive import Archive
from memkit.cli import cli
from memkit.hook.entries import note_own
from memkit.paths import Home
from memkit.settings.validate import every_key
from tests.browse.test_transcript import SESSION, conversation, line, write
from tests.ci import first
from tests.cli.conftest import Run
from tests.memory import Memory, make_memory

KEY = "sk-ant-api03-" + "aB3dE5gH7jK9mN1pQ3rS"


def write_transcript(root: Path) -> Path:
    """Write a session as Claude Code keeps it; return the directory of all sessions."""
    lines = conversation()
    lines[6]["message"]["content"][0]["text"] = f"second answer, with the key {KEY}"
    write(root / "claude" / "projects" / "-x" / f"{SESSION}.jsonl", lines)
    return root / "claude" / "projects"


@pytest.fixture
def imported(run: Run, tmp_path: Path, model_home: Home) -> Memory:
    """A memory of one session whose transcript Claude Code still has, for a test to change."""
    memory = make_memory(tmp_path, models=model_home.models)
    found = run(memory, "import", str(write_transcript(tmp_path)))
    assert (found.status, found.errors) == (0, "")
    return memory


@pytest.fixture(scope="module")
def imported_once(tmp_path_factory: pytest.TempPathFactory, model_home: Home) -> Memory:
    root = tmp_path_factory.mktemp("imported")
    memory = make_memory(root, models=model_home.models)
    arguments = ["import", "--project", memory.project.root, str(write_transcript(root))]
    variables = {"MEMKIT_HOME": memory.home.root, "MEMKIT_SERVICE_ENABLED": "false"}
    assert CliRunner(env=variables).invoke(cli, arguments).exit_code == 0
    return memory


@pytest.fixture
def shared(imported_once: Memory, monkeypatch: pytest.MonkeyPatch) -> Memory:
    """The same. Not to be changed."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(transcript_of(imported_once).parents[2]))
    return imported_once


def transcript_of(memory: Memory) -> Path:
    return Path(memory.project.root).parent / "claude" / "projects" / "-x" / f"{SESSION}.jsonl"


class TestExpand:
    """The whole section, and where to go from there."""

    def test_for_people(self, run: Run, read_only: Memory) -> None:
        identifier = run(read_only, "search", "--json", "migration").json["results"][0]["id"]
        found = run(read_only, "expand", identifier[:6])
        assert (found.status, found.errors) == (0, "")
        assert found.output.startswith(f"{identifier}  2026-11-20 > 09:00 Work > 09:00 What is left")
        assert f"{read_only.project.memory}/2026-11-20.md:" in found.output
        assert "```sql\n# not a heading\nselect 1;\n```" in found.output
        turn = re.search(r"memkit transcript --turn ([0-9a-f]{8})\n", found.output)
        assert turn is not None
        assert "(its transcript is no longer on this machine)" in found.output

    def test_not_there(self, run: Run, read_only: Memory, fresh: Memory) -> None:
        hint = "`memkit search` prints IDs, and finds text that has changed since"
        for identifier in ("zz", "", "0" * 64, "é"):
            complaint = run(read_only, "expand", identifier).complaint
            assert complaint == f"memkit: nothing in this project has the ID {identifier!r}; {hint}"
        assert "has no index yet" in run(fresh, "expand", "0").complaint


class TestTranscript:
    """The original exchange."""

    @pytest.mark.parametrize("name", [SESSION, SESSION[:8], "PATH"])
    def test_whole(self, run: Run, shared: Memory, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        path = transcript_of(shared)
        arguments = [str(path) if name == "PATH" else name]
        found = run(shared, "transcript", *arguments)
        assert (found.status, found.errors) == (0, "")
        assert found.output.startswith(f"{path}\n")
        places = [found.output.index(text) for text in ("first question", "→ Bash", "← Bash failed",
                                                        "second answer", "third answer")]  # fmt: skip
        assert places == sorted(places)
        assert KEY not in found.output
        assert "[redacted:anthropic-key]" in found.output
        value = run(shared, "transcript", "--json", *arguments).json
        assert list(value) == [
            "session", "transcript", "archived", "turn", "branch", "commit", "damaged_bytes", "missing", "messages",
        ]  # fmt: skip
        assert (value["session"], value["turn"], len(value["messages"])) == (SESSION, None, 8)
        assert KEY not in json.dumps(value)
        monkeypatch.setenv("MEMKIT_CAPTURE_REDACT", "th[a-z]rd answer")
        assert "third answer" not in run(shared, "transcript", *arguments).output

    def test_begins_at_the_turn_and_marks_it(self, run: Run, shared: Memory) -> None:
        lines = run(shared, "transcript", SESSION, "--turn", "20000002").output.splitlines()
        rules = [number for number, text in enumerate(lines) if text.startswith("── ")]
        turn = run(shared, "transcript", SESSION, "--turn", "20000002", "--json").json["turn"]
        assert [lines[number].strip("─ ") for number in rules] == [f"turn {turn}", f"end of turn {turn}"]
        assert (rules[0] <= 2, rules[1]) == (True, len(lines) - 1)  # below the path and the branch
        around = run(shared, "transcript", SESSION, "--turn", turn, "--context", "1").output.splitlines()
        start, end = (around.index(lines[number]) for number in rules)
        assert around[start : end + 1] == lines[rules[0] :]
        assert start > rules[0]  # a message before it
        assert around[end + 1].startswith("user  ")

    def test_a_turn_needs_neither_session_nor_index(self, run: Run, imported: Memory) -> None:
        shutil.rmtree(imported.home.index, ignore_errors=True)
        (session,) = run(imported, "sessions", "--json").json["sessions"]
        found = run(imported, "transcript", "--turn", session["turns"][1], "--json").json
        assert (found["session"], found["turn"]) == (SESSION, session["turns"][1])

    def test_not_there(self, run: Run, shared: Memory) -> None:
        for arguments, said in (
            (["00000000"], "no transcript of session '00000000'"),
            (["/no/such.jsonl"], "no such transcript: /no/such.jsonl"),
            (["no.jsonl"], "no such transcript: no.jsonl"),
            (["--turn", "ffffffff"], f"no turn 'ffffffff' in the memory of {shared.project.root}; give its session, or search"),
            ([SESSION, "--turn", "ffffffff"], "has no turn 'ffffffff'"),
            ([SESSION, "--turn", "0000000"], "matches several turns"),
            ([""], "no transcript of session"),
        ):
            assert said in run(shared, "transcript", *arguments).complaint

    @pytest.mark.parametrize("name", [SESSION, SESSION[:8], "PATH"])
    def test_gone_but_archived(self, run: Run, imported: Memory, tmp_path: Path, name: str) -> None:
        path = transcript_of(imported)
        arguments = [str(path) if name == "PATH" else name]
        whole = run(imported, "transcript", *arguments).output
        one = run(imported, "transcript", "--turn", "20000002", SESSION, "--json").json
        path.unlink()
        archived = run(imported, "transcript", *arguments).output
        origin, _, rest = archived.partition("\n")
        assert origin == f"session {SESSION}, from memkit's archive: its transcript is gone"
        assert rest == whole.partition("\n")[2]
        assert run(imported, "transcript", "--turn", "20000002", SESSION, "--json").json == {
            **one, "transcript": None, "archived": True,
        }  # fmt: skip
        assert "has no turn" in run(imported, "transcript", SESSION, "--turn", "ffff").complaint
        size = run(imported, "status", "--json").json["archive"]
        (archive,) = Path(imported.home.archive).iterdir()
        assert size == {"enabled": True, "sessions": 1, "bytes": archive.stat().st_size}
        archive.unlink()
        gone = "no such transcript" if name == "PATH" else "no transcript of session"
        assert gone in run(imported, "transcript", *arguments).complaint

    def test_expand_of_an_archived_session(self, run: Run, imported: Memory, tmp_path: Path) -> None:
        identifier = run(imported, "search", "--json", "second").json["results"][0]["id"]
        section = run(imported, "expand", "--json", identifier).json["sections"][0]
        assert (section["transcript"], section["session"]) == (str(transcript_of(imported)), SESSION)
        transcript_of(imported).unlink()
        section = run(imported, "expand", "--json", identifier).json["sections"][0]
        assert (section["transcript"], section["archived"]) == (None, True)
        output = run(imported, "expand", identifier).output
        assert f"memkit transcript --turn {section['turns'][0]}" in output
        assert "no longer" not in output

    @pytest.mark.parametrize("place", first(1, [1, 0, -1]))
    def test_what_a_damaged_archive_lacks_is_named_and_the_rest_shown(
        self, run: Run, imported: Memory, tmp_path: Path, place: int
    ) -> None:
        path = transcript_of(imported)
        kept = path.read_bytes()
        run(imported, "index")
        archive = Archive(imported.home)
        turns, file, ends = archive.turns(SESSION), archive.path(SESSION), [0]
        file.unlink()
        for turn in turns:  # a frame each
            archive.append(SESSION, [turn])
            ends.append(file.stat().st_size)
        data = bytearray(file.read_bytes())
        data[ends[1:][place] - 6] ^= 0xFF  # the checksum and what is before it
        file.write_bytes(data)
        os.utime(file, (1_700_000_000, 1_700_000_000))
        path.unlink()
        lost = turns[place].id
        shown = run(imported, "transcript", SESSION)
        assert f"bytes of this archive cannot be read, including turns {lost}" in shown.errors
        told = run(imported, "transcript", SESSION, "--json").json
        assert told["missing"] == [lost]
        assert {one["turn"] for one in told["messages"]} == {turn.id for turn in turns} - {lost}
        refused = run(imported, "transcript", SESSION, "--turn", lost).complaint
        assert "bytes of it cannot be read" in refused
        results = run(imported, "search", "--all", "--json", "question").json["results"]
        sections = [run(imported, "expand", one["id"]) for one in results]
        assert any(f"(turn {lost} cannot be read:" in one.output for one in sections)
        found = [one for one in run(imported, "doctor", "--deep", "--json").json["findings"] if "archive" in one["code"]]
        assert [one["code"] for one in found] == ["archive-damaged"]
        assert str(file) in found[0]["what"]
        path.write_bytes(kept)
        assert run(imported, "import", str(path)).status == 0
        assert archive.damaged(SESSION) == 0
        assert archive.turns(SESSION) == turns

    def test_long_output_is_cut_for_people_only(self, run: Run, fresh: Memory, tmp_path: Path) -> None:
        result = {"type": "tool_result", "tool_use_id": "t", "content": "x" * 9000}
        path = write(tmp_path / "long.jsonl", [line(1, "user", "go"), line(2, "user", [result])])
        assert "characters more; --json shows them)" in run(fresh, "transcript", str(path)).output
        messages = run(fresh, "transcript", str(path), "--json").json["messages"]
        assert messages[1]["tools"][0]["result"] == "x" * 9000


class TestImport:
    """Existing transcripts."""

    def test_a_file(self, run: Run, fresh: Memory, tmp_path: Path) -> None:
        path = write(tmp_path / "one.jsonl", conversation())
        found = run(fresh, "import", str(path))
        assert found.output.startswith(f"{path.name}: 3 turns, 3 new\n3 turns of 1 transcript, 3 new.\n")
        assert f"Remembered in {fresh.project.root}" in found.output
        path.write_bytes(b"\x89PNG\r\n\x00\xff{}\n[]\n5\n")
        found = run(fresh, "import", str(path))
        assert (found.status, "no turns (lines skipped: " in found.output) == (0, True)
        assert "no such file or directory: /no/such/place" in run(fresh, "import", "/no/such/place").complaint
        assert "no sessions" in run(fresh, "import", ".").complaint


class TestConfig:
    """`memkit config`."""

    def test_list(self, run: Run, fresh: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
        Path(fresh.home.config_file).write_text("\nsearch.k = 9\n")
        monkeypatch.setenv("MEMKIT_SEARCH_MODE", "dense")
        found = run(fresh, "config")
        assert found.output == run(fresh, "config", "list").output
        assert f"search.k = 9  [{fresh.home.config_file}]\n    number of results\n" in found.output
        assert "\nsearch.mode = dense  [MEMKIT_SEARCH_MODE]\n" in found.output
        assert '\nrecall.inject = pointers\n' in found.output
        assert "index.uri" not in found.output
        assert len(found.output.splitlines()) < 45
        everything = run(fresh, "config", "list", "--all").output
        assert '\nindex.uri = ""\n' in everything
        assert sum(" = " in line for line in everything.splitlines() if line[0] != " ") == len(list(every_key()))
        assert run(fresh, "config", "path", "--all").status == 2
        value = run(fresh, "config", "--json").json["settings"]
        assert value["search.k"]["value"] == 9
        assert value["memory.exclude"]["origin"] == "default"

    def test_get_and_set(self, run: Run, fresh: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        found = run(fresh, "config", "set", "memory.exclude", "drafts/,*.tmp.md")
        place = fresh.home.config_file
        assert found.output == f'memory.exclude = ["drafts/", "*.tmp.md"] in {place}\n'
        assert run(fresh, "config", "get", "memory.exclude").output == '["drafts/", "*.tmp.md"]\n'
        assert run(fresh, "config", "get", "search.k", "--json").json == {"key": "search.k", "value": 5}
        assert run(fresh, "config", "path").output == f"{place}\n"
        run(fresh, "config", "set", "recall.inject", "off")
        assert json.loads(Path(fresh.home.hook_settings).read_text())["inject"] == "off"
        fresh.home = Home(str(tmp_path / "not" / "there"))
        assert run(fresh, "config", "set", "search.k", "7").status == 0
        assert run(fresh, "config", "get", "search.k").output == "7\n"
        monkeypatch.setenv("MEMKIT_SEARCH_K", "3")
        found = run(fresh, "config", "set", "search.k", "8")
        assert found.errors == "memkit: MEMKIT_SEARCH_K is also set and overrides it\n"

    def test_wrong(self, run: Run, fresh: Memory) -> None:
        for arguments, status in (
            ("get", 2), ("set search.k", 2), ("list search.k", 2), ("path x y", 2), ("unset search.k", 2),
            ("get search.kk", 1), ("get search", 1), ("set search.k 0", 1), ("set nonsense 0", 1),
        ):  # fmt: skip
            found = run(fresh, "config", *arguments.split())
            assert (found.status, found.output) == (status, ""), arguments
            assert not Path(fresh.home.config_file).exists()


class TestInASession:
    """Commands that Claude runs, some of them unprompted, read the memory of one project."""

    @pytest.fixture
    def two(self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Memory, Memory]:
        """A project, and another one that is known to the same home."""
        text = "### 09:00 Which {0}? <!-- turn:{0}{0} -->\n**Answered** The {0} is 7443, as was said.\n"
        day = "# 2026-11-18\n\n## 09:00 Work <!-- session:{0}-session -->\n\n" + text
        name = "2026-11-18.md"
        own = make_memory(tmp_path / "own", {name: day.format("aaaa")})
        other = make_memory(tmp_path / "other", {name: day.format("bbbb")})
        other = dataclasses.replace(other, home=own.home)
        monkeypatch.setenv("MEMKIT_EMBEDDING_PROVIDER", "none")
        for memory in (own, other):
            note_own(memory.home, memory.project.root, "", memory.path(name).read_text())
            assert run(memory, "index").status == 0
        return own, other

    @pytest.fixture
    def in_session(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("memkit.cli.heed_user_only", lambda: None)  # of this test's own process
        monkeypatch.setenv("CLAUDECODE", "1")

    def test_files_of_others_are_refused(
        self, run: Run, two: tuple[Memory, Memory], in_session: None
    ) -> None:
        """`test_recall_command` has the options of all commands."""
        own, other = two
        transcript = Path(other.project.root, "x.jsonl")
        transcript.write_text("{}\n")
        for name in (str(transcript), "./x.jsonl"):
            assert "only its own project" in run(own, "transcript", name).complaint, name
        assert run(own, "search", "--project", own.project.root, "aaaa").status == 0

    def test_others_are_neither_listed_nor_opened_by_a_setting(
        self, run: Run, two: tuple[Memory, Memory], in_session: None
    ) -> None:
        own, _ = two
        (listed,) = run(own, "projects", "--json").json["projects"]
        assert listed["root"] == own.project.root
        assert "a session may not change" in run(own, "config", "set", "recall.other_projects", "true").complaint
        assert "a session may not change" in run(own, "config", "set", "index.uri", "http://127.0.0.1:1").complaint
        assert run(own, "config", "set", "search.k", "3").status == 0

    def test_ids_of_others_are_unknown(
        self, run: Run, two: tuple[Memory, Memory], monkeypatch: pytest.MonkeyPatch, in_session: None
    ) -> None:
        own, other = two
        monkeypatch.delenv("CLAUDECODE")
        results = run(own, "search", "--all-projects", "--all", "--json", "bbbb").json["results"]
        theirs = next(result["id"] for result in results if result["root"] == other.project.root)
        assert run(own, "expand", theirs).status == 0
        monkeypatch.setenv("CLAUDECODE", "1")
        assert run(own, "expand", theirs).status == 1
        Path(own.home.config_file).write_text("[recall]\nother_projects = true\n")
        assert run(own, "expand", theirs).status == 0
        Path(own.home.config_file).unlink()
        Path(own.project.root, ".memkit.toml").write_text("[recall]\nother_projects = true\n")
        assert run(own, "expand", theirs).status == 1

    def test_transcripts_of_others(
        self, run: Run, two: tuple[Memory, Memory], tmp_path: Path, in_session: None
    ) -> None:
        own, _ = two
        folder = tmp_path / "claude" / "projects" / "any"
        # What a repository brings can name any session.
        own.path("2026-11-17.md").write_text(
            "# 2026-11-17\n\n## 09:00 Forged <!-- session:bbbb-session -->\n\n"
            "- Decided: say so. <!-- grip:cccc turns:bbbbbbbb -->\n\n"
            "### 09:00 Forged? <!-- turn:bbbbbbbb -->\n**Answered** Say bbbb.\n"
        )
        folder.mkdir(parents=True)
        for name in ("aaaa", "bbbb"):
            entry = {
                "type": "user", "uuid": name, "sessionId": f"{name}-session", "cwd": "/",
                "timestamp": "2026-11-18T09:00:00Z", "message": {"role": "user", "content": f"say {name}"},
            }  # fmt: skip
            (folder / f"{name}-session.jsonl").write_text(json.dumps(entry) + "\n")
        assert "say aaaa" in run(own, "transcript", "aaaa-session").output
        assert run(own, "index").status == 0
        for arguments in (["bbbb-session"], ["bbbb"], ["--turn", "bbbbbbbb"]):
            refused = run(own, "transcript", *arguments)
            assert "say bbbb" not in refused.output
            assert "only its own project" in refused.complaint
        assert "say bbbb" not in run(own, "cite", "cccc").output
