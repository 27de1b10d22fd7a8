"""The scripted API, without a client."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from tests.messages_api import Conversation, Failure, MessagesApi, Reply, Request, text, tool

QUESTION = {"role": "user", "content": [{"type": "text", "text": "Which port?"}]}
CALL = {"role": "assistant", "content": [tool("Bash", command="cat port")]}
RESULT = {
    "role": "user",
    "content": [{"type": "tool_result", "tool_use_id": "1", "content": "Second question: 7443"}],
}


def post(api: MessagesApi, path: str = "/v1/messages", **body: Any) -> str:
    body.setdefault("model", "a-model")
    request = urllib.request.Request(api.url + path, json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=10) as response:
        content: bytes = response.read()
    return content.decode()


def as_request(*messages: Any, **body: Any) -> Request:
    return Request("/v1/messages", {}, {"messages": list(messages), **body})


def test_json_reply() -> None:
    with MessagesApi(lambda request: [text("Hello."), tool("Bash", command="ls")]) as api:
        message = json.loads(post(api, messages=[QUESTION]))
        assert [block["type"] for block in message["content"]] == ["text", "tool_use"]
        assert message["stop_reason"] == "tool_use"
        assert [request.last_user_text for request in api.requests] == ["Which port?"]


def test_streamed_reply_holds_the_same_blocks() -> None:
    with MessagesApi(lambda request: [text("Hello."), tool("Bash", command="ls")]) as api:
        lines = post(api, messages=[QUESTION], stream=True).splitlines()
    events = [json.loads(line.removeprefix("data: ")) for line in lines if line[:5] == "data:"]
    deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
    assert deltas[0]["text"] == "Hello."
    assert json.loads(deltas[1]["partial_json"]) == {"command": "ls"}
    assert events[-2]["delta"]["stop_reason"] == "tool_use"
    assert events[-1]["type"] == "message_stop"


def test_counting_tokens_calls_no_model() -> None:
    with MessagesApi() as api:
        assert json.loads(post(api, "/v1/messages/count_tokens", messages=[QUESTION]))
        assert len(api.requests) == 1
        assert api.model_calls == []


def test_failure_has_its_status_and_body() -> None:
    with MessagesApi(lambda request: Failure(529, "overloaded_error", "Overloaded")) as api:
        with pytest.raises(urllib.error.HTTPError) as raised:
            post(api, messages=[QUESTION])
        with raised.value as answer:
            assert answer.code == 529
            assert json.loads(answer.read())["error"]["type"] == "overloaded_error"


def test_a_broken_script_fails_the_test() -> None:
    def broken(request: Request) -> Reply:
        raise ValueError("a mistake in the test")

    api = MessagesApi(broken)
    with pytest.raises(urllib.error.HTTPError) as raised:
        post(api, messages=[QUESTION])
    raised.value.close()
    with pytest.raises(ValueError, match="a mistake in the test"):
        api.stop()


def test_waiting_for_a_request_that_does_not_come() -> None:
    with MessagesApi() as api, pytest.raises(AssertionError, match="did not come"):
        api.wait_for(lambda request: True, timeout=0.01)


def test_request_tells_system_text_from_the_users() -> None:
    reminder = {"role": "system", "content": "Remember."}
    request = as_request(QUESTION, CALL, RESULT, reminder, system=[text("Be brief.")])
    assert request.system == "Be brief.\nRemember."
    assert request.last_user_text == "Second question: 7443"
    assert "Which port?" in request.text


def test_conversation_counts_the_steps_of_the_last_prompt() -> None:
    first, second, other = [tool("Bash", command="ls")], [text("7443")], [text("Other.")]
    script = Conversation({"Which port": [first, second], "Second question": [other]})
    assert script(as_request(QUESTION)) == first
    assert script(as_request(QUESTION, CALL, RESULT)) == second
    assert script(as_request(QUESTION, CALL, RESULT, CALL, RESULT)) == second


def test_conversation_answers_an_unknown_prompt_otherwise() -> None:
    script = Conversation({"Which port": [[text("7443")]]}, otherwise="What?")
    unknown = {"role": "user", "content": "Anything else?"}
    assert script(as_request(QUESTION, CALL, unknown)) == [text("What?")]
