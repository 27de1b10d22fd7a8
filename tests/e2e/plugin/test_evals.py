"""The cases in `evals/`, as `claude plugin eval` reads and runs them, with a scripted model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.client import ClaudeHome
from tests.e2e.plugin.user import MemkitUser, copy_plugin
from tests.messages_api import MessagesApi, text


@pytest.fixture
def plugin(claude_home: ClaudeHome, tmp_path: Path) -> Path:
    """A copy as in a clone: the client refuses a directory with the tests' environments.

    The sessions of an evaluation have no HOME, so that hooks would use the memory home of the account.
    """
    copied = copy_plugin(tmp_path / "plugin")
    hooks = copied / "hooks" / "hooks.json"
    text = hooks.read_text().replace('"command": "python3"', '"command": "env"')
    hooks.write_text(text.replace('"-I"', f'"MEMKIT_HOME={claude_home.memkit_home}", "python3", "-I"'))
    return copied


def test_every_case_loads(user: MemkitUser, api: MessagesApi, plugin: Path, tmp_path: Path) -> None:
    """The client loads all cases before it runs the first; the limit on the cost ends it there."""
    api.script = lambda request: [text("7443")]
    options = ("--trust-plugin", "--no-publish", "--ablation", "none", "--runs", "1", "--max-cost-usd", "0.000001")
    printed = user.home.plugin("eval", str(plugin), *options, "--output-dir", str(tmp_path), status=2)
    assert "Couldn't load" not in printed
    evals = plugin / "evals"
    assert len(list(evals.glob("remembered-*/case.yaml"))) == len(list(evals.glob("unrelated-*/case.yaml"))) == 20
    user.wait_until_alone()


def test_a_case_remembers(user: MemkitUser, api: MessagesApi, plugin: Path, tmp_path: Path) -> None:
    api.script = lambda request: [text("Port 7443.")]
    result = tmp_path / "result.json"
    user.home.plugin(
        "eval", str(plugin), "--trust-plugin", "--no-publish", "--scaffold", "--runs", "1", "--threshold", "0",
        "--case", "remembered-staging-port", "--output-dir", str(tmp_path), "--json", str(result),
    )  # fmt: skip
    (case,) = json.loads(result.read_text())["cases"]
    assert case["name"] == "remembered-staging-port"
    starts = [call for call in api.model_calls if "20 sessions on 20 days" in call.text]
    assert len(starts) == 1  # with the plugin; the other run is without
    assert (user.home.memkit_home / "sessions").is_dir()
    user.wait_until_alone()
