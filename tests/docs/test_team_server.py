"""docs/compose-server.yaml: only the proxy is reachable, and it needs a token."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

DOCUMENTS = Path(__file__).resolve().parents[2] / "docs"
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
