"""What a person sees of memkit without asking: a line at the start, and the status line."""

from __future__ import annotations

from tests.e2e.plugin.user import MemkitUser
from tests.messages_api import MessagesApi


def test_the_first_session_of_a_day(api: MessagesApi, user: MemkitUser) -> None:
    day = user.plant_yesterday("It listens on 7443.")
    command = f"{user.plugin / 'bin' / 'memkit'} statusline"
    user.home.write_settings({"statusLine": {"type": "command", "command": command}})
    line = f"memkit: 1 session on 1 day; last: {day} 09:15 Earlier work"
    with user.home.start_interactive() as session:
        session.wait_for(line)
        session.wait_for(f"memkit 1 session · last {day}")
        session.exit()
    with user.home.start_interactive() as session:
        session.wait_for(f"memkit 1 session · last {day}")
        assert "last: " not in session.screen
        session.exit()
    user.run("service", "stop")
