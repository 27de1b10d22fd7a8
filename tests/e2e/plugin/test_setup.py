"""A new user: `memkit setup` on a clean home."""

from __future__ import annotations

import json
import os

from tests.e2e.plugin.user import MemkitUser
from tests.messages_api import Conversation, MessagesApi, text

FACT = "The staging gateway listens on 7443, because the ingress has 443."


def test_setup_installs_the_plugin_and_imports(api: MessagesApi, user: MemkitUser) -> None:
    user.home.plugins = []
    user.home.environment["PATH"] = f"{user.home.claude.parent}{os.pathsep}{os.environ['PATH']}"
    api.script = Conversation({"Which port": [[text(FACT)]], "Do you": [[text("Yes.")]]})
    user.home.run_prompt("Which port does the staging gateway use?")
    assert user.prompts() == []

    steps = json.loads(user.run("setup", "--yes", "--json"))["steps"]
    assert {step["state"] for step in steps.values()} == {"ok"}, steps
    assert user.prompts() == ["Which port does the staging gateway use?"]
    assert FACT in user.search("staging gateway")[0]["content"]

    again = json.loads(user.run("setup", "--yes", "--json"))["steps"]
    assert "already installed" in again["plugin"]["said"]
    assert "no new sessions" in again["import"]["said"]

    user.run("config", "set", "recall.session_start", "entries")
    user.home.run_prompt("Do you remember?")
    user.wait_until_remembered()
    assert FACT in api.model_calls[-1].text  # told at the start of the session, by the plugin
    assert user.prompts() == ["Which port does the staging gateway use?", "Do you remember?"]


def test_an_old_session_is_offered_once(api: MessagesApi, user: MemkitUser) -> None:
    user.home.plugins, plugins = [], user.home.plugins
    api.script = Conversation({"Which port": [[text(FACT)]]})
    user.home.run_prompt("Which port does the staging gateway use?")
    user.home.plugins = plugins
    with user.home.start_interactive() as session:
        session.wait_for("1 earlier session of this project is not in its memory")
        session.exit()
    user.wait_until_remembered()
    assert user.prompts() == []
    user.run("import")
    assert user.prompts() == ["Which port does the staging gateway use?"]
