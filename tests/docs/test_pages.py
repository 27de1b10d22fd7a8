"""The manual is whole, and what it takes from the code is what the code says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
import yaml

from memkit.doctor import checks, finding_texts
from memkit.paths import Home
from tests.ci import only_in_ci

REPOSITORY = Path(__file__).resolve().parents[2]
DOCUMENTS = REPOSITORY / "docs"
REFERENCE = ["docs/reference.py", "--check"]


def run(arguments: list[str], directory: Path = REPOSITORY) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(
        [sys.executable, *arguments], cwd=directory, env=environment, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip


def test_what_is_generated_is_fresh() -> None:
    done = run(REFERENCE)
    assert (done.returncode, done.stderr) == (0, "")


def test_what_is_stale_is_named_and_written_again(tmp_path: Path) -> None:
    copies = tmp_path / "docs"
    copies.mkdir()
    (copies / "reference.py").write_bytes((DOCUMENTS / "reference.py").read_bytes())
    fresh = {}
    for page, old in (
        ("commands.md", "`--min-relevance SHARE`"), ("settings.md", "best_relevance = 0.32"), ("models.md", "`voyage-3.5`"),
    ):  # fmt: skip
        fresh[page] = (DOCUMENTS / page).read_text()
        assert old in fresh[page]
        (copies / page).write_text(fresh[page].replace(old, "something else"))
    done = run(REFERENCE, tmp_path)
    assert done.returncode == 1
    assert [page for page in fresh if f"docs/{page}" not in done.stderr] == []
    assert run(REFERENCE[:1], tmp_path).returncode == 0
    assert {page: (copies / page).read_text() for page in fresh} == fresh


def test_it_can_be_built_and_asks_no_foreign_server(tmp_path: Path) -> None:
    site = tmp_path / "site"
    done = run(["-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(site)])
    assert done.returncode == 0, done.stderr
    pages = list(site.rglob("*.html"))
    assert {page.stem for page in DOCUMENTS.glob("*.md")} <= {page.stem for page in pages}
    assert not (site / "reference.py").exists()
    for page in pages:
        text = page.read_text(encoding="utf-8")
        foreign = re.findall(r'<(?:script|img|link|iframe)\b[^>]*"((?:https?:)?//[^"]*)"', text)
        assert foreign == [], page.name


def test_whoever_installs_memkit_gets_this_one() -> None:
    """The distribution `memkit` on the index belongs to somebody else."""
    install = re.compile(
        r"(?:(?:\b(?:pip3?|pipx|poetry)|uv (?:pip|tool)|uv) (?:install|upgrade|add|run)|\buvx)\b[^`\n]*?[ '\"](memkit[\w-]*)(?!@)"
        r"|(memkit[\w-]*)\[\w"
    )
    named = []
    for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "pyproject.toml", "docs", "skills", "memkit", "hooks", "bin", ".claude-plugin"):
        top = REPOSITORY / name
        for file in [top, *top.rglob("*")]:
            if file.is_file() and file.suffix in ("", ".md", ".py", ".toml", ".json", ".yaml", ".js", ".html", ".svg"):
                named += ["".join(found) for found in install.findall(file.read_text("utf-8"))]
    assert set(named) == {"memkit-memory"}
    assert len(named) >= 6
    assert '\nname = "memkit-memory"' in (REPOSITORY / "pyproject.toml").read_text("utf-8")


def test_other_agents_get_the_same_rules_and_a_release_has_every_page() -> None:
    assert (REPOSITORY / "AGENTS.md").resolve() == REPOSITORY / "CLAUDE.md"
    (packed,) = re.findall(r"^include = \[(.*)\]$", (REPOSITORY / "pyproject.toml").read_text("utf-8"), re.MULTILINE)
    assert {path.name for path in REPOSITORY.glob("*.md")} <= set(re.findall(r'"(.*?)"', packed))


def test_links_of_the_front_page_lead_somewhere() -> None:
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^):#]+)(?:#[^)]*)?\)", text)
    assert len(links) > 10
    assert [link for link in links if not (REPOSITORY / link).is_file()] == []


def test_the_recording_shows_commands_and_loads_nothing() -> None:
    text = (DOCUMENTS / "terminal.svg").read_text(encoding="utf-8")
    ElementTree.fromstring(text)
    shown = re.sub(r"<[^>]+>", "", text).replace("&#160;", " ")
    for command in ("memkit search", "memkit expand", "memkit transcript"):
        assert command in shown
    assert re.findall(r"(?:href|url)\W+https?:", text) == []


def test_the_quick_start_shows_short_screens() -> None:
    text = (DOCUMENTS / "index.md").read_text(encoding="utf-8")
    screens = re.findall(r"```\n\$ memkit (\w+).*\n((?:.+\n)+)```", text)
    assert [command for command, _ in screens] == ["sessions", "search", "show"]
    assert [command for command, shown in screens if shown.count("\n") > 8] == []
    assert "7443" in screens[1][1] and "7443" in screens[2][1]


@only_in_ci  # runs fourteen commands, some of them with the model
def test_the_recording_and_the_screens_are_current(model_home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMKIT_TEST_MODELS", model_home.models)
    done = run(["docs/pictures.py", "--check"])
    assert (done.returncode, done.stderr) == (0, "")


def test_every_finding_of_the_doctor_is_explained() -> None:
    text = (DOCUMENTS / "troubleshooting.md").read_text(encoding="utf-8")
    cells = [line.split("|")[2] for line in text.splitlines() if line.startswith("| ")]
    explained = re.findall(r"`([^`]+)`(\\\*)?", " ".join(cells))
    assert {code for code, _ in explained} == set(finding_texts())
    fixed = set().union(*checks.FIXES.values())
    assert {code for code, star in explained if star} == fixed


# docs/compose-server.yaml: only the proxy is reachable, and it needs a token.


TEXT = (DOCUMENTS / "compose-server.yaml").read_text()
COMPOSE = yaml.safe_load(TEXT)


def test_the_page_links_the_file_and_sets_its_variables() -> None:
    page = (DOCUMENTS / "models.md").read_text()
    assert "](compose-server.yaml)" in page
    named = set(re.findall(r"MEMKIT_TEAM_\w+", page))
    assert named == set(re.findall(r"MEMKIT_TEAM_\w+", TEXT)) == {"MEMKIT_TEAM_HOST", "MEMKIT_TEAM_TOKEN"}


def test_only_the_proxy_is_reachable_and_checks_the_token() -> None:
    chroma, proxy = COMPOSE["services"]["chroma"], COMPOSE["services"]["proxy"]
    assert "ports" not in chroma
    assert chroma["networks"] == ["inside"]
    assert COMPOSE["networks"]["inside"]["internal"] is True
    assert proxy["ports"] == ["443:443"]
    assert ":?" in proxy["environment"]["TOKEN"]  # without one, nothing starts
    caddyfile = COMPOSE["configs"]["caddyfile"]["content"].replace("$$", "$")
    assert '@stranger not header Authorization "Bearer {$TOKEN}"' in caddyfile
    assert caddyfile.index("respond @stranger") < caddyfile.index("reverse_proxy chroma:8000")
