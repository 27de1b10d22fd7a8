"""The layers of settings, errors for bad ones, and what a repository may set."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memkit.errors import ConfigError
from memkit.hook.notices import note_announced
from memkit.index import read_files
from memkit.paths import Home
from memkit.projects import trust
from memkit.projects.project import Project
from memkit.settings import load as settings_file
from memkit.settings import validate as validation
from tests.ci import examples


@pytest.fixture
def home(tmp_path: Path) -> Home:
    root = tmp_path / "home"
    root.mkdir()
    return Home(str(root))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    root = tmp_path / "project"
    root.mkdir()
    return Project(str(root))


def write_own(home: Home, text: str) -> None:
    Path(home.config_file).write_text(text)


def write_theirs(project: Project, text: str) -> None:
    Path(project.root, settings_file.PROJECT_FILE).write_text(text)


def load(home: Home, project: Project | None = None, **environ: str) -> settings_file.Loaded:
    return settings_file.load(home, project, environ=environ)


def refusal(make: Callable[..., object], *arguments: Any, **named: Any) -> str:
    """Return the one line with which bad settings are refused."""
    with pytest.raises(ConfigError) as caught:
        make(*arguments, **named)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_each_layer_wins_over_the_one_before(
    home: Home, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = ("search", "k")
    assert load(home, project).settings.search.k == 5
    write_own(home, "search.k = 6\n")
    assert load(home, project).settings.search.k == 6
    write_theirs(project, "search.k = 7\n")
    assert load(home, project).settings.search.k == 7
    environ = {"MEMKIT_SEARCH_K": "8"}
    assert load(home, project, **environ).settings.search.k == 8
    monkeypatch.setenv("MEMKIT_SEARCH_K", "8")
    with settings_file.set_for_this_call(["search.k=9"]):
        loaded = settings_file.load(home, project)
        assert load(home, project, **environ).settings.search.k == 8  # these variables alone
    assert loaded.settings.search.k == 9
    assert loaded.origins[key] == "--set"
    assert settings_file.load(home, project).settings.search.k == 8
    write_theirs(project, "\n\nsearch.mode = 'dense'\n")
    assert load(home, project, **environ).origins == {
        key: "MEMKIT_SEARCH_K", ("search", "mode"): f"{project.root}/.memkit.toml",
    }  # fmt: skip
    write_own(home, "# mine\n[recall]\nbudget_tokens = 300\n")
    assert load(home).origins == {("recall", "budget_tokens"): home.config_file}


def test_values_from_variables(home: Home) -> None:
    assert load(home, MEMKIT_CHUNKING_MAX_CHARACTERS="900").settings.chunking.max_characters == 900
    for text, expected in (("a", ["a"]), (" a, b,,", ["a", "b"]), ("", []), ('["a, b", "c"]', ["a, b", "c"]), ("\udcff", ["\udcff"])):
        assert load(home, MEMKIT_MEMORY_PATHS=text).settings.memory.paths == tuple(expected)
    for text, no in (("true", "false"), ("Yes", "no"), ("ON", "off"), ("1", "0"), ("y", "n"), ("t", "f"), (" true ", "false")):
        assert load(home, MEMKIT_MEMORY_SHARED=text).settings.memory.shared is True
        assert load(home, MEMKIT_EMBEDDING_DOWNLOAD=no).settings.embedding.download is False
    for uri in ("", "cloud", "/srv/index", "~/index", "http://127.0.0.1:8000", "https://host/"):
        assert load(home, MEMKIT_INDEX_URI=uri).settings.index.uri == uri
    for name in ("HOME", "PYTHON", "CHILD", "DISABLE", "TEST_MODELS"):
        load(home, **{f"MEMKIT_{name}": "1"})  # no settings


def test_numbers_from_text(home: Home) -> None:
    """A number in quotes is a number, in every layer."""
    for text in ("1000", " 1000 ", "1_000", "1000.0", "+1000"):
        assert load(home, MEMKIT_SEARCH_K=text).settings.search.k == 1000
        assert repr(load(home, MEMKIT_SEARCH_HALF_LIFE_DAYS=text).settings.search.half_life_days) == "1000.0"
        write_own(home, f"search.k = '{text}'")
        assert repr(load(home).settings.search.k) == "1000"


def test_a_bad_variable_is_named(home: Home) -> None:
    for name, value, said in (
        ("MEMKIT_SEARCH_KK", "1", "unknown setting search.kk"),
        ("MEMKIT_SEARCH_K", "many", "search.k = 'many'"),
        ("MEMKIT_SEARCH_LANGUAGE", "klingon", "search.language = 'klingon'"),
        ("MEMKIT_CAPTURE_REDACT", "[1", "capture.redact = '[1'"),
        ("MEMKIT_CHUNKING_MIN_CHARACTERS", "1000", "more than a quarter of max_characters"),
        ("MEMKIT_INDEX_URI", "localhost:8000", "index.uri = 'localhost:8000'"),
        ("MEMKIT_INDEX_URI", "somewhere/else", "index.uri = 'somewhere/else'"),
        ("MEMKIT_INDEX_URI", "http://host:99999", "index.uri = 'http://host:99999'"),
        ("MEMKIT_INDEX_URI", "http://user:secret@host:80", "index.uri"),
        ("MEMKIT_INDEX_URI", "https://host/prefix", "index.uri"),
        ("MEMKIT_SEARCH_MODE", "\udcff", r"search.mode = '\udcff': must be context"),
        ("MEMKIT_SEARCH_K", "\udcff", r"search.k = '\udcff': must be a whole number"),
        ("MEMKIT_INDEX_URI", "http://[", "index.uri"),
        ("MEMKIT_INDEX_URI", "~nobody-of-that-name/index", "index.uri"),
    ):  # fmt: skip
        line = refusal(load, home, **{name: value})
        assert line.startswith(f"{name}: ")
        assert said in line


@settings(max_examples=examples(100))
@given(
    key=st.sampled_from(sorted(validation.every_key())),
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.datetimes() | st.text()
        | st.text("\ud800"),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=4,
    ),
)  # fmt: skip
def test_a_value_of_any_kind(key: settings_file.Key, value: object) -> None:
    """Any value either survives writing and reading, or is a one-line error."""
    try:
        settings = validation.validate({key: settings_file.Value(value, "here")})
    except ConfigError as error:
        assert str(error).startswith(f"here: {'.'.join(key)} = ") or key[0] == "chunking"
        assert str(error).isprintable()
        return
    taken = getattr(getattr(settings, key[0]), key[1])
    again = validation.validate({key: settings_file.Value(json.loads(json.dumps(taken)), "here")})
    assert again == settings


AZURE = {
    "MEMKIT_EMBEDDING_PROVIDER": "openai",
    "MEMKIT_EMBEDDING_BASE_URL": "https://mine.openai.azure.com",
    "MEMKIT_EMBEDDING_AZURE_DEPLOYMENT": "vectors-3.small",
}


def test_addresses_of_vectors(home: Home) -> None:
    for name, value, said in (
        ("BASE_URL", "localhost:1234", "embedding.base_url = 'localhost:1234': must be http(s)://host"),
        ("BASE_URL", "https://user:secret@host", "embedding.base_url"),
        ("BASE_URL", "https://host/v1?key=1", "embedding.base_url"),
        ("BASE_URL", "https://host/\u2028", "embedding.base_url"),
        ("BASE_URL", "file:///etc/passwd", "embedding.base_url"),
        ("BASE_URL", "", "azure_deployment needs provider = openai and base_url"),
        ("PROVIDER", "ollama", "azure_deployment needs provider = openai and base_url"),
        ("PROVIDER", "google", "base_url is for the providers openai and ollama only"),
        ("AZURE_DEPLOYMENT", "../other", "embedding.azure_deployment = '../other': must be letters"),
        ("AZURE_API_VERSION", "1&x=2", "embedding.azure_api_version = '1&x=2': must be letters"),
    ):  # fmt: skip
        assert said in refusal(load, home, **{**AZURE, f"MEMKIT_EMBEDDING_{name}": value})
    assert load(home, **AZURE).settings.embedding.azure_deployment == "vectors-3.small"
    for url in ("http://127.0.0.1:1234/v1", "http://[::1]:8080", "https://host/a/b/"):
        assert load(home, **{**AZURE, "MEMKIT_EMBEDDING_BASE_URL": url}).settings.embedding.base_url == url
    for provider in ("local", "multilingual", "none", "sentence-transformers"):  # which send nothing
        assert load(home, **{**AZURE, "MEMKIT_EMBEDDING_PROVIDER": provider})


def test_an_error_names_file_setting_and_what_is_allowed(home: Home) -> None:
    for text, said in (
        ("# a\nsearch.k = 0\n", "search.k = 0: must be a whole number from 1 to 1000"),
        ("search = { mode = 'dense', k = 1.5 }\n", "search.k = 1.5: must be a whole number from 1 to 1000"),
        ("\r\n[search]\r\nk = true\r\n", "search.k = True: must be a whole number from 1 to 1000"),
        ("search.half_life_days = 0", "= 0: must be a number from 0.1 to 36500"),
        ("search.best_relevance = nan", "= nan: must be a number from 0 to 1"),
        ("[memory]\nexclude = [\n'shared = 1',\n]\nshared = 'perhaps'\n", "= 'perhaps': must be true or false"),
        ("memory.paths = 'notes'", "= 'notes': must be a list of strings"),
        ("memory.paths = ['notes', 1]", "= ['notes', 1]: must be a list of strings"),
        ("search.language = 1", "= 1: must be text"),
        ("embedding.query_prefix = 1", "= 1: must be text of at most 200 characters"),
        ("search.mode = 'best'", "must be context, dense, lexical, rrf or weighted"),
        ("[capture]\nredact = [\n'fine',\n'[A-Z',\n]\n", "'[A-Z' is not a regular expression"),
        ("\nfoo = 1\n", "unknown setting foo;"), ("\n[foo]\nbar = 1\n", "unknown setting foo.bar"),
        ("[search]\n[search.deep]\nk = 1\n", "unknown setting search.deep"),
        ("\n[[search]]\nk = 1\n", "unknown setting search;"), ("search = 5\n", "unknown setting search;"),
        ("[search]\nk = \n", "not valid TOML: Invalid value (at line 2"), ("[search\n", "not valid TOML"),
        ("[search]\nk = 1\nk = 2\n", "not valid TOML"), ("x = " + "[" * 5000, "not valid TOML"),
    ):  # fmt: skip
        Path(home.config_file).write_bytes(text.encode())
        line = refusal(load, home)
        assert line.startswith(f"{home.config_file}: ")
        assert said in line
    path = Path(home.config_file)
    path.write_bytes(b"# fine\nsearch.mode = '\xff'\n")
    assert "not UTF-8" in refusal(load, home)
    path.unlink()
    path.mkdir()
    assert refusal(load, home).startswith(f"{path}: cannot be read")


class TestForThisCall:
    """`--set section.name=value`, for one command in the user's own terminal."""

    @pytest.fixture(autouse=True)
    def in_a_terminal(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in trust._MARKS:
            monkeypatch.delenv(name, raising=False)

    def test_values_are_read_like_those_of_variables(self, home: Home) -> None:
        given = ["search.k=7", "search.k=8", "memory.paths=a, b=c", "memory.shared=yes", "search.user_memory=0"]
        with settings_file.set_for_this_call(given):
            settings = settings_file.load(home).settings
        assert settings.search.k == 8  # the last one counts
        assert settings.memory.paths == ("a", "b=c")
        assert (settings.memory.shared, settings.search.user_memory) == (True, False)
        assert settings_file.load(home).settings == settings_file.Settings()
        with pytest.raises(ValueError, match="inside"), settings_file.set_for_this_call(["search.k=7"]):
            raise ValueError("inside")
        assert settings_file.load(home).settings.search.k == 5
        with settings_file.set_for_this_call(["recall.inject=off"]):
            settings_file.publish_hook_settings(home)  # hooks get none of it
        assert json.loads(Path(home.hook_settings).read_text())["inject"] == "pointers"
        write_own(home, "chunking.max_characters = 4000\n")  # which this value needs
        with settings_file.set_for_this_call(["chunking.min_characters=1000"]):
            assert settings_file.load(home).settings.chunking.min_characters == 1000

    def test_an_error_is_one_line_without_secrets(self, home: Home) -> None:
        for text, said in (
            ("search.k=many", "--set: search.k = 'many': must be a whole number from 1 to 1000"),
            ("search.kk=1", "--set: unknown setting search.kk; "),
            ("search.a\nb=1", "--set: unknown setting search.a\ufffdb; "),
            ("capture.redact=[A-Z", "--set: capture.redact = '[A-Z': must be a list of strings"),
            ("search.k", "--set: write section.name=value, as in --set search.k=10"),
            ("sk-secret", "--set: write section.name=value"),
            ("=sk-secret", "--set: write section.name=value"),
            ("keys.openai=sk-secret", "--set: keys.openai is a key, and the shell's history would keep it"),
            ("keys.sk-secret=1", "--set: unknown setting keys.…; "),
            ("chunking.min_characters=1000", "--set: chunking: min_characters = 1000 is more than a quarter"),
        ):  # fmt: skip
            with pytest.raises(ConfigError) as caught, settings_file.set_for_this_call([text]):
                settings_file.load(home)
            assert str(caught.value).startswith(said)
            assert "\n" not in str(caught.value) and "secret" not in str(caught.value)

    @pytest.mark.parametrize("mark", trust._MARKS)
    def test_a_session_may_set_nothing(self, monkeypatch: pytest.MonkeyPatch, mark: str) -> None:
        """Claude may run reading commands unprompted, and a stranger's text may have told it what to run."""
        monkeypatch.setenv(mark, "1")
        for section, name in validation.every_key():
            given = settings_file.set_for_this_call([f"{section}.{name}=1"])
            with pytest.raises(ConfigError, match="--set does nothing in a Claude Code session"), given:
                raise AssertionError("it was set")


class TestKeys:
    """Keys are secrets: no message and no object shows one."""

    def test_an_error_does_not_show_it(self, home: Home) -> None:
        for value in ("'sk-1 x'", "'sk-1\u2019'", "['sk-1']", '"sk-1\\n"'):
            write_own(home, f"keys.openai = {value}\n")
            said = refusal(load, home)
            assert re.search(r"keys\.openai = '\*+': ", said) and "sk-1" not in said
        for name in ("sk-1", "AIzaSy", '"sk 1"', "abcdefghijklmnopqrstuvwxyz"):
            write_own(home, f"[keys]\n{name} = 'openai'\n")
            said = refusal(load, home)
            assert "unknown setting keys.…; " in said and name.strip('"') not in said

    def test_nothing_shows_it(self, home: Home, project: Project) -> None:
        write_own(home, "keys.openai = 'sk-1'\n")
        write_theirs(project, "keys.openai = 'sk-2'\nkeys.other = 'sk-3'\n")
        loaded = load(home, project)
        assert loaded.settings.keys.openai == "sk-1"
        other = Path(home.root, "other.toml")
        other.write_text("keys.openai = 'sk-2'\n")
        changes = settings_file.decisive_changes(home, other)
        assert changes == ['keys.openai = "********", now "********"']
        assert "sk-" not in f"{loaded} {changes}"


class TestFileOfAProject:
    """`.memkit.toml` may come from strangers."""

    def test_may_set_harmless_settings(self, home: Home, project: Project) -> None:
        write_theirs(project, "memory.exclude = ['drafts/']\nsearch = { k = 0, language = 'german' }\n"
                              "chunking = { max_characters = 300, min_characters = 50 }\n")  # fmt: skip
        loaded = load(home, project)
        assert len(loaded.refused) == 1  # the bad value
        assert loaded.settings.memory.exclude == ("drafts/",)
        assert loaded.settings.chunking.max_characters == 300
        assert (loaded.settings.search.k, loaded.settings.search.language) == (5, "german")

    def test_may_set_nothing_else(self, home: Home, project: Project) -> None:
        harmless = {("memory", "exclude")}
        harmful = [
            key
            for key in validation.every_key()
            if key not in harmless and key[0] not in ("chunking", "search")
        ]
        assert {section for section, _ in harmful} == {
            "memory", "capture", "archive", "embedding", "index", "recall", "service", "watch",
            "summarize", "jobs", "sync", "keys",
        }  # fmt: skip
        write_theirs(project, "".join(f"{section}.{name} = 1\n" for section, name in harmful))
        loaded = load(home, project)
        assert loaded.settings == load(home).settings
        for line, (section, name) in zip(loaded.refused, harmful, strict=True):
            assert line.startswith(f"{project.root}/.memkit.toml: {section}.{name} is refused")

    @pytest.mark.parametrize(
        "text",
        [
            "memory.exclude = ['!/etc', '../', '~/', '/', '', '../outside/*', '!../outside']\n",
            "search.domains = ['src=../outside', '../outside=docs', '/=/', 'src=~']\n",
            "[memory]\npaths = ['../outside']\nexclude = []\n",
            "memory.paths = ['../outside']\n",
            "['memory']\n'paths' = ['../outside']\n",
            "chunking.max_characters = 100000\nsearch.language = '../outside'\n",
        ],
    )
    def test_brings_nothing_from_outside_into_the_memory(
        self, home: Home, project: Project, text: str
    ) -> None:
        outside = Path(project.root).parent / "outside"
        for directory in (outside, Path(project.memory)):
            directory.mkdir(parents=True)
            (directory / "note.md").write_text("# A note\n")
        (Path(project.root) / "README.md").write_text("# Not memory\n")
        (Path(project.memory) / "link.md").symlink_to(outside / "note.md")
        allowed = set(read_files(project, home, load(home).settings))
        assert allowed == {".memkit/memory/note.md"}
        write_theirs(project, text)
        assert set(read_files(project, home, load(home, project).settings)) <= allowed

    def test_stops_nothing(self, home: Home, project: Project) -> None:
        for text, said in (
            ("[search]\nk = 0\n", ": search.k = 0"), ("search.mode = ''\n", ": search.mode = ''"),
            ("search.language = 'klingon'\n", ": search.language = 'klingon'"),
            ("chunking.max_characters = 300\n", "a quarter of max_characters"),
            ("\nunknown = 1\n", ": unknown setting unknown"), ("[search\n", ": not valid TOML"),
            ("x = " + "[" * 5000, ": not valid TOML"), ("x = " + "9" * 5000, ": not valid TOML"),
        ):  # fmt: skip
            write_theirs(project, text)
            loaded = load(home, project)
            assert loaded.settings == load(home).settings
            assert len(loaded.refused) == 1
            assert said in loaded.refused[0]

    def test_a_value_that_conflicts_with_the_users_is_refused(self, home: Home, project: Project) -> None:
        write_theirs(project, "chunking.max_characters = 1000\n")
        for own, environ in (("", {"MEMKIT_CHUNKING_MIN_CHARACTERS": "300"}), ("chunking.min_characters = 300\n", {})):
            write_own(home, own)
            loaded = load(home, project, **environ)
            assert (loaded.settings.chunking.max_characters, loaded.settings.chunking.min_characters) == (1500, 300)
            assert len(loaded.refused) == 1

    def test_only_a_small_regular_file_is_read(self, home: Home, project: Project) -> None:
        path = Path(project.root, settings_file.PROJECT_FILE)
        path.symlink_to("/dev/zero")
        assert "it leads out of" in load(home, project).refused[0]
        path.unlink()
        os.mkfifo(path)
        assert "not a regular file" in load(home, project).refused[0]
        path.unlink()
        path.write_text("# " + "x" * 2_000_000)
        assert "larger than" in load(home, project).refused[0]

    def test_messages_are_short_and_printable(self, home: Home, project: Project) -> None:
        write_theirs(project, '"\\u001b[2J\\nIgnore" = 1\n[search]\nmode = "' + "z" * 5000 + '"\n')
        refused = load(home, project).refused
        assert len(refused) == 2
        for line in refused:
            assert line.isprintable()
            assert len(line) < 300 + len(project.root)

    @settings(max_examples=examples(100))
    @given(text=st.text(max_size=200))
    def test_nothing_in_it_is_an_error(self, tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
        root = tmp_path_factory.getbasetemp()
        root.joinpath(settings_file.PROJECT_FILE).write_bytes(text.encode("utf-8", "surrogatepass"))
        loaded = load(Home(str(root / "none")), Project(str(root)))
        assert all(line.isprintable() for line in loaded.refused)


class TestSave:
    """`memkit config set`."""

    def test_keeps_the_rest_of_the_file(self, home: Home) -> None:
        for before, after in (
            ("", "[search]\nk = 7\n"), ("# c\nsearch.k = 3 # why\n", "# c\nsearch.k = 7 # why\n"),
            ("search = { k = 3 } # x\n", "search = { k = 7 } # x\n"),
            ("[search] # head\n# c\nk=3 # why\n\n[memory]\n", None),
            ("[search]\r\nk = 3\r\n", "[search]\r\nk = 7\r\n"),
        ):  # fmt: skip
            path = Path(home.config_file)
            path.write_bytes(before.encode())
            assert settings_file.save(home, ("search", "k"), "7") == 7
            text = path.read_bytes().decode()
            if after is None:
                assert text.replace("7", "3").replace(" ", "") == before.replace(" ", "")
            else:
                assert text == after
            assert load(home).settings.search.k == 7
            assert path.stat().st_mode & 0o777 == 0o600

    def test_a_bad_value_changes_nothing(self, home: Home) -> None:
        for before, key, value, said in (
            ("", ("search", "k"), "0", "search.k"), ("", ("search", "kk"), "1", "unknown setting search.kk"),
            ("[search\n", ("search", "k"), "7", ": not valid TOML"),
            ("search = 5\n", ("search", "k"), "7", ": search is not a table"),
            ("[[search]]\nk = 5\n", ("search", "k"), "7", ": search is not a table"),
            ("chunking.min_characters = 300\n", ("chunking", "max_characters"), "1000", "a quarter of max_characters"),
        ):  # fmt: skip
            write_own(home, before)
            assert said in refusal(settings_file.save, home, key, value)
            assert Path(home.config_file).read_text() == before

    def test_a_link_stays_one(self, tmp_path: Path) -> None:
        home = Home(str(tmp_path / "new" / "home"))
        settings_file.save(home, ("memory", "paths"), ".memkit/memory, notes")
        assert load(home).settings.memory.paths == (".memkit/memory", "notes")
        assert os.stat(home.root).st_mode & 0o777 == 0o700
        kept = tmp_path / "memkit.toml"
        kept.write_text("# kept in git\nchunking.max_characters = 4000\n[search]\nk = 'x'\nmode = 'y'\n")
        Path(home.config_file).unlink()
        Path(home.config_file).symlink_to(kept)
        settings_file.save(home, ("search", "k"), "7")  # bad values can be fixed one by one
        settings_file.save(home, ("search", "mode"), "dense")
        settings_file.save(home, ("chunking", "min_characters"), "1000")
        assert Path(home.config_file).is_symlink()
        assert "# kept in git" in kept.read_text()
        loaded = load(home).settings
        assert (loaded.search.k, loaded.search.mode, loaded.chunking.min_characters) == (7, "dense", 1000)


def test_hook_settings_are_published_as_json(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    write_own(home, "[recall]\nsession_start = \"both\"\ninject = \"off\"\non_edit = false\n")
    monkeypatch.setenv("MEMKIT_RECALL_SESSION_START", "off")  # no variable of one shell is published
    settings_file.publish_hook_settings(home)
    path = Path(home.hook_settings)
    wanted = {
        "session_start": "both", "inject": "off", "on_failure": True, "on_edit": False, "on_agent": True,
        "service": True, "summary_tokens": 60_000,
    }  # fmt: skip
    assert json.loads(path.read_bytes()) == wanted
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_bytes(b"{half")
    settings_file.publish_hook_settings(home)
    assert json.loads(path.read_bytes())["session_start"] == "both"


def test_a_budget_is_published_until_the_user_decides(home: Home) -> None:
    for text, tokens in (
        ("", 60_000), ("daily_tokens = 9000", 9000), ('provider = "none"', 0), ('provider = "auto"', 0),
        ('provider = "ollama"', 0), ('mode = "off"', 0),
    ):  # fmt: skip
        write_own(home, f"[summarize]\n{text}\n")
        settings_file.publish_hook_settings(home)
        assert json.loads(Path(home.hook_settings).read_bytes())["summary_tokens"] == tokens


def test_summaries_start_on_their_own_after_a_choice_or_the_line(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def may() -> bool:
        return settings_file.may_summarize(home, load(home).settings)

    write_own(home, "[search]\nk = 7\n")
    assert may()  # without a login no model is asked
    monkeypatch.setattr("memkit.login.why_unusable", lambda: "")
    assert not may()
    settings_file.save(home, settings_file.PROVIDER, "auto")
    assert may()
    write_own(home, "")
    assert not may()
    note_announced(home)
    assert may()


def test_a_byte_order_mark_is_skipped(home: Home) -> None:
    write_own(home, "\ufeff[search]\nk = 7\n")
    assert load(home).settings.search.k == 7
    settings_file.save(home, ("search", "k"), "8")
    assert load(home).settings.search.k == 8
    assert Path(home.config_file).read_text(encoding="utf-8").startswith("[search]")
