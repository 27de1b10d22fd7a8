"""The service in the life of the real client: warm while a session lives, gone after it."""

from __future__ import annotations

import json

import pytest

from tests.e2e.plugin.user import MemkitUser
from tests.e2e.waiting import wait_until
from tests.messages_api import Conversation, MessagesApi, text

pytestmark = pytest.mark.e2e

FACT = "The staging gateway listens on port 7443, because 443 is taken by the ingress controller."


def test_pointers_reach_the_model_in_the_next_session(api: MessagesApi, user: MemkitUser) -> None:
    api.script = Conversation(
        {
            "listen on": [[text(FACT)]],
            "change the port": [[text("Changed.")]],
            "poem": [[text("Roses are red.")]],
        }
    )
    user.home.run_prompt("Which port does the staging gateway listen on?")
    user.wait_until_remembered()
    user.wait_until_alone()

    with user.home.start_interactive() as session:
        status = wait_until(lambda: warm(user), 120, user.complaint)
        assert [one["root"] for one in status["sessions"]] == [str(user.home.project)]
        for port in range(8443, 8453):
            user.ask(session, f"Please change the port of the staging gateway to {port}.", "Changed.")
            calls = [call for call in api.model_calls if "change the port" in call.last_user_text]
            if "Earlier work on this, quoted:" in calls[-1].text:
                break  # on a busy machine, the service may answer a hook too late
        user.ask(session, "Write a poem about roses and the moon.", "Roses are red.")
        # Longer than the idle time: a live session keeps it.
        assert user.service()["pid"] == status["pid"]
    assert "Earlier work on this, quoted:" in calls[-1].text
    assert f"“{FACT}”" in calls[-1].text
    poem = [call for call in api.model_calls if "poem about" in call.last_user_text]
    assert poem[0].text.count("Earlier work on this, quoted:") == calls[-1].text.count("Earlier work on this, quoted:")
    user.wait_until_remembered()
    counted = json.loads(user.run("status", "--json"))["pointers"]
    assert counted == {"given": 1, "followed": 0, "kinds": {"prompt": {"given": 1, "followed": 0}}}
    user.wait_until_alone()


def warm(user: MemkitUser) -> dict[str, object]:
    """What the service says once it holds a project; else empty."""
    status = user.service()
    return status if status.get("projects") else {}
