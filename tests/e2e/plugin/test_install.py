"""Installing the plugin as users do, and removing it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memkit.agents.claude_code.installation import PUBLISHED
from tests.e2e.plugin.user import MemkitUser, copy_plugin, git
from tests.messages_api import Conversation, MessagesApi, text, tool

FACT = "The staging gateway listens on 7443, because the ingress has 443."


def remember(api: MessagesApi, user: MemkitUser) -> None:
    """One session that the installed plugin keeps, and one that is told of it."""
    user.home.plugins = []
    call = tool("Bash", command="memkit search 'staging gateway'", description="Search")
    replies = {"Which port": [[text(FACT)]], "Search it": [[call], [text("Done.")]]}
    api.script = Conversation(replies)
    user.home.run_prompt("Which port does the staging gateway use?")
    user.wait_until_remembered()
    assert user.prompts() == ["Which port does the staging gateway use?"]
    # The plugin's programs are on the PATH of the model's commands.
    user.home.run_prompt("Search it.", "--allowedTools", "Bash(memkit *)")
    assert FACT in api.model_calls[-1].last_user_text
    user.wait_until_remembered()


@pytest.mark.essential
def test_install_from_github(api: MessagesApi, user: MemkitUser, tmp_path: Path) -> None:
    clone = copy_plugin(tmp_path / "memkit")
    git(clone, "init", "--quiet", "--initial-branch=release")
    git(clone, "add", ".")
    git(clone, "commit", "--quiet", "--message", "memkit")
    user.home.redirect_github("memkit/memkit", clone)
    user.home.plugin("marketplace", "add", PUBLISHED)
    user.home.plugin("install", "memkit@memkit")

    remember(api, user)

    (installed,) = user.home.directory.glob(".claude/plugins/cache/memkit/memkit/*")
    assert os.access(installed / "bin" / "memkit", os.X_OK)
    assert not (installed / ".git").exists()


def test_uninstalling_leaves_the_memory(api: MessagesApi, user: MemkitUser) -> None:
    user.home.plugin("marketplace", "add", str(user.plugin))
    user.home.plugin("install", "memkit@memkit")
    remember(api, user)
    remembered = user.memory()

    user.home.plugin("uninstall", "memkit@memkit")
    user.home.run_prompt("Are you still there?")

    assert "memkit" not in api.model_calls[-1].text
    assert user.memory() == remembered
    assert [*user.home.memkit_home.glob("spool/*/*")] == []
    assert user.search("staging gateway")
    assert user.workers() == []


def test_memkit_uninstalls_itself(api: MessagesApi, user: MemkitUser) -> None:
    user.home.plugin("marketplace", "add", str(user.plugin))
    user.home.plugin("install", "memkit@memkit")
    remember(api, user)
    remembered = user.memory()
    user.home.environment["PATH"] = f"{user.home.claude.parent}{os.pathsep}{os.environ['PATH']}"

    said = user.run("uninstall", "--yes")

    assert f"This stays (the memory):\n  {user.home.project}/.memkit/memory\n" in said
    assert "memkit" not in user.home.plugin("list")
    assert "memkit" not in user.home.plugin("marketplace", "list")
    assert not user.home.memkit_home.exists()
    user.wait_until_alone()
    user.home.run_prompt("Are you still there?")
    assert "memkit" not in api.model_calls[-1].text
    assert not user.home.memkit_home.exists()
    assert user.memory() == remembered


@pytest.mark.essential
def test_plugin_is_valid(user: MemkitUser, tmp_path: Path) -> None:
    plugin = copy_plugin(tmp_path / "memkit")
    assert "Validation passed" in user.home.plugin("validate", "--strict", "--profile", "directory", str(plugin))
