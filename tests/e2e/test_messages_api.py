"""The scripted API, without a client."""

from __future__ import annotations

import json
import urllib.error
import urllib.request

import pytest

from tests.messages_api import MessagesApi, Reply, Request


def test_a_broken_script_fails_the_test() -> None:
    def broken(request: Request) -> Reply:
        raise ValueError("a mistake in the test")

    api = MessagesApi(broken)
    asked = urllib.request.Request(f"{api.url}/v1/messages", json.dumps({"model": "m", "messages": []}).encode())
    with pytest.raises(urllib.error.HTTPError) as raised:
        urllib.request.urlopen(asked, timeout=10)
    raised.value.close()
    with pytest.raises(ValueError, match="a mistake in the test"):
        api.stop()


def test_waiting_for_a_request_that_does_not_come() -> None:
    with MessagesApi() as api, pytest.raises(AssertionError, match="did not come"):
        api.wait_for(lambda request: True, timeout=0.01)
