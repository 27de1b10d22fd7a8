"""Anthropic's Messages API through its SDK, which sees to retries and time-outs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from memkit.llm.model import (
    ModelError,
    NotConfiguredError,
    RefusedError,
    Reply,
    Task,
    TokenUsage,
    UnavailableError,
    UnusableReplyError,
)
from memkit.llm.providers.failures import PATIENCE_SECONDS, failure, retry_after, too_slow, unusable
from memkit.llm.providers.keys import find_key
from memkit.llm.providers.structure import as_structure, count
from memkit.llm.providers.text import excerpt, sendable
from memkit.settings import SummarizeSettings

if TYPE_CHECKING:
    import anthropic
    from anthropic.types import Message

USUAL_MODEL = "claude-haiku-4-5"

_KEY = "ANTHROPIC_API_KEY"
_TOKEN = "ANTHROPIC_AUTH_TOKEN"
_ADVICE = f"set {_KEY} to a valid one"


def has_anthropic_key(environ: Mapping[str, str]) -> bool:
    """Whether there is a key or token for the API."""
    return bool(find_key(environ, (_KEY, _TOKEN)))


class AnthropicProvider:
    """The Messages API, asked for a call of one tool, so that the answer is an object.

    `timeout` is in seconds, of each try; `retries` is how many more the SDK may make.
    """

    name = "anthropic"

    def __init__(
        self,
        model: str,
        *,
        key: str = "",
        token: str = "",
        base_url: str = "",
        timeout: float,
        retries: int = 2,
    ) -> None:
        self.model = model
        self._key = key
        self._token = token
        self._base_url = base_url
        self._timeout = timeout
        self._retries = retries

    @classmethod
    def configured(
        cls, settings: SummarizeSettings, environ: Mapping[str, str]
    ) -> AnthropicProvider:
        """As the user set it up. Raises `NotConfiguredError` if there is no key."""
        key = find_key(environ, (_KEY,))
        token = "" if key else find_key(environ, (_TOKEN,))
        if not (key or token):
            raise NotConfiguredError(
                f"the provider anthropic needs a key; set the environment variable {_KEY}"
            )
        return cls(
            settings.model or USUAL_MODEL,
            key=key,
            token=token,
            base_url=settings.base_url or environ.get("ANTHROPIC_BASE_URL", ""),
            timeout=settings.timeout_seconds,
        )

    def ask(self, task: Task) -> Reply:
        """One call; see `Provider.ask`."""
        import anthropic  # takes up to two seconds
        import httpx

        # Whatever the SDK raises may hold the request or the key: only a line of it goes on.
        try:
            with self._client(anthropic) as client:
                message = client.messages.create(**self._request(task))
        except anthropic.APIStatusError as error:
            raise self._failure(error) from None
        except anthropic.APITimeoutError as error:
            was_asked = not isinstance(error.__cause__, httpx.ConnectTimeout)
            raise too_slow(self.name, self._timeout, was_asked=was_asked) from None
        except anthropic.APIConnectionError as error:
            said = excerpt(str(error.__cause__ or error), self._key, self._token)
            raise UnavailableError(
                f"{self.name} cannot be reached ({said}); it is asked again later"
            ) from None
        except (anthropic.AnthropicError, ValueError):
            raise UnusableReplyError(
                f"{self.name} gave an unreadable answer; check summarize.base_url"
            ) from None
        if not isinstance(message, anthropic.types.Message):
            raise UnusableReplyError(
                f"{self.name} gave an unreadable answer; check summarize.base_url"
            )
        return self._reply(task, message)

    def _client(self, sdk: Any) -> anthropic.Anthropic:
        client: anthropic.Anthropic = sdk.Anthropic(
            api_key=self._key or None,
            auth_token=self._token or None,
            base_url=self._base_url or None,
            timeout=self._timeout,
            max_retries=self._retries,
            http_client=sdk.DefaultHttpxClient(event_hooks={"response": [_limit_patience]}),
        )
        return client

    def _request(self, task: Task) -> dict[str, Any]:
        # What is marked is cached with the tool before it, if it is as long as the model asks for.
        instructions = {
            "type": "text",
            "text": sendable(task.instructions),
            "cache_control": {"type": "ephemeral"},
        }
        return {
            "model": self.model,
            "max_tokens": task.max_tokens,
            "thinking": {
                "type": "disabled"
            },  # some models think else, which forbids to force a tool
            "system": [instructions],
            "messages": [{"role": "user", "content": sendable(task.material)}],
            "tools": [
                {"name": task.tool, "description": "The answer.", "input_schema": task.schema}
            ],
            "tool_choice": {"type": "tool", "name": task.tool},
        }

    def _reply(self, task: Task, message: Message) -> Reply:
        usage = _usage(message)
        if message.stop_reason == "refusal":
            raise RefusedError(f"{message.model} at {self.name} declined to answer", usage)
        if message.stop_reason in ("max_tokens", "model_context_window_exceeded"):
            raise unusable(self.name, self.model, "it was cut short", usage)
        inputs = [
            block.input
            for block in message.content or ()
            if block.type == "tool_use" and block.name == task.tool
        ]
        if not inputs:
            raise unusable(self.name, self.model, "it does not call the tool", usage)
        value = as_structure(inputs[0], task.schema)
        if value is None:
            raise unusable(self.name, self.model, "it is not of the structure", usage)
        return Reply(value, usage, message.model or self.model)

    def _failure(self, error: anthropic.APIStatusError) -> ModelError:
        said = excerpt(_said(error), self._key, self._token)
        wait = retry_after(error.response.headers)
        return failure(self.name, self.model, error.status_code, said, _ADVICE, wait)


def _limit_patience(response: Any) -> None:
    """Have the SDK give up where it would sleep for as long as the answer says: that may be hours."""
    wait = retry_after(response.headers)
    if wait is not None and wait > PATIENCE_SECONDS:
        response.headers["x-should-retry"] = "false"


def _said(error: anthropic.APIStatusError) -> str:
    body = error.body
    if isinstance(body, dict) and isinstance(body.get("error"), dict):
        return str(body["error"].get("message", ""))
    return error.message


def _usage(message: Message) -> TokenUsage:
    usage = message.usage
    read = count(usage.cache_read_input_tokens)
    written = count(usage.cache_creation_input_tokens)
    return TokenUsage(
        tokens_in=count(usage.input_tokens) + read + written,
        tokens_out=count(usage.output_tokens),
        cache_read=read,
        cache_written=written,
    )
