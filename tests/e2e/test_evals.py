"""The cases in `evals/`, as `claude plugin eval` reads and runs them, with a scripted model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.client import ClaudeHome
from tests.e2e.plugin.user import copy_plugin
from tests.messages_api import MessagesApi, text


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy as in a clone: the client refuses a directory with the tests' environments."""
    return copy_plugin(tmp_path_factory.mktemp("plugin"))


def test_every_case_loads(claude_home: ClaudeHome, api: MessagesApi, plugin: Path, tmp_path: Path) -> None:
    """The client loads all cases before it runs the first; the limit on the cost ends it there."""
    api.script = lambda request: [text("7443")]
    options = ("--trust-plugin", "--no-publish", "--ablation", "none", "--runs", "1", "--max-cost-usd", "0.000001")
    printed = claude_home.plugin("eval", str(plugin), *options, "--output-dir", str(tmp_path), status=2)
    assert "Couldn't load" not in printed
    evals = plugin / "evals"
    assert len(list(evals.glob("remembered-*/case.yaml"))) == len(list(evals.glob("unrelated-*/case.yaml"))) == 20


def test_a_case_remembers(claude_home: ClaudeHome, api: MessagesApi, plugin: Path, tmp_path: Path) -> None:
    api.script = lambda request: [text("Port 7443.")]
    result = tmp_path / "result.json"
    claude_home.plugin(
        "eval", str(plugin), "--trust-plugin", "--no-publish", "--scaffold", "--runs", "1", "--threshold", "0",
        "--case", "remembered-staging-port", "--output-dir", str(tmp_path), "--json", str(result),
    )  # fmt: skip
    (case,) = json.loads(result.read_text())["cases"]
    assert case["name"] == "remembered-staging-port"
    starts = [call for call in api.model_calls if "20 sessions on 20 days" in call.text]
    assert len(starts) == 1  # with the plugin; the other run is without
