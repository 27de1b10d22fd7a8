"""Anthropic's Messages API through its SDK, which handles retries and timeouts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from memkit.embedding import excerpt
from memkit.llm import errors
from memkit.llm.errors import TokenUsage
from memkit.llm.model import Reply, Task, as_structure, find_key, token_count
from memkit.settings import SummarizeSettings
from memkit.text import encodable

if TYPE_CHECKING:
    import anthropic
    from anthropic.types import Message

DEFAULT_MODEL = "claude-haiku-4-5"

_KEY = "ANTHROPIC_API_KEY"
_TOKEN = "ANTHROPIC_AUTH_TOKEN"


def has_anthropic_key(environ: Mapping[str, str]) -> bool:
    """Whether there is a key or token for the API."""
    return bool(find_key(environ, _KEY, _TOKEN))


class AnthropicProvider:
    """The Messages API. A forced tool call makes the answer an object.

    The SDK makes up to `retries` more tries after the first.
    """

    name = "anthropic"

    def __init__(
        self, settings: SummarizeSettings, environ: Mapping[str, str], retries: int = 2
    ) -> None:
        """Raise `NotConfiguredError` if there is no key."""
        self.model = settings.model or DEFAULT_MODEL
        self._key = find_key(environ, _KEY)
        self._token = "" if self._key else find_key(environ, _TOKEN)
        if not (self._key or self._token):
            raise errors.NotConfiguredError(
                f"the provider anthropic needs a key; set the environment variable {_KEY}"
            )
        self._base_url = settings.base_url or environ.get("ANTHROPIC_BASE_URL", "")
        self._timeout = settings.timeout_seconds
        self._retries = retries

    def ask(self, task: Task) -> Reply:
        """Make one call; see `Provider.ask`."""
        import anthropic  # takes up to two seconds
        import httpx

        unreadable = errors.UnusableReplyError(
            f"{self.name} gave an unreadable answer; check summarize.base_url"
        )
        # An exception of the SDK may hold the request or the key: only one line of it goes on.
        try:
            with self._client(anthropic) as client:
                message = client.messages.create(**self._request(task))
        except anthropic.APIStatusError as error:
            raise self._status_error(error) from None
        except anthropic.APITimeoutError as error:
            was_sent = not isinstance(error.__cause__, httpx.ConnectTimeout)
            raise errors.timeout_error(self.name, self._timeout, was_sent=was_sent) from None
        except anthropic.APIConnectionError as error:
            reason = excerpt(str(error.__cause__ or error), self._key, self._token)
            raise errors.UnavailableError(
                f"{self.name} cannot be reached ({reason}); memkit tries again later"
            ) from None
        except (anthropic.AnthropicError, ValueError):
            raise unreadable from None
        if not isinstance(message, anthropic.types.Message):
            raise unreadable
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
        # The API caches the tool and these instructions if they reach the model's minimum length.
        instructions = {
            "type": "text",
            "text": encodable(task.instructions),
            "cache_control": {"type": "ephemeral"},
        }
        tool = {"name": task.tool, "description": "The answer.", "input_schema": task.schema}
        return {
            "model": self.model,
            "max_tokens": task.max_tokens,
            "thinking": {"type": "disabled"},  # a model that thinks cannot be forced to use a tool
            "system": [instructions],
            "messages": [{"role": "user", "content": encodable(task.material)}],
            "tools": [tool],
            "tool_choice": {"type": "tool", "name": task.tool},
        }

    def _reply(self, task: Task, message: Message) -> Reply:
        usage = _usage(message)
        if message.stop_reason == "refusal":
            raise errors.RefusedError(f"{message.model} at {self.name} declined to answer", usage)
        if message.stop_reason in ("max_tokens", "model_context_window_exceeded"):
            raise errors.unusable(self.name, self.model, "it was cut short", usage)
        for block in message.content or ():
            if block.type == "tool_use" and block.name == task.tool:
                value = as_structure(block.input, task.schema)
                if value is None:
                    raise errors.unusable(self.name, self.model, "it has the wrong structure", usage)
                return Reply(value, usage, message.model or self.model)
        raise errors.unusable(self.name, self.model, "it does not call the tool", usage)

    def _status_error(self, error: anthropic.APIStatusError) -> errors.ModelError:
        reason = error.message
        if isinstance(error.body, dict) and isinstance(error.body.get("error"), dict):
            reason = str(error.body["error"].get("message", ""))
        return errors.http_error(
            self.name,
            self.model,
            error.status_code,
            excerpt(reason, self._key, self._token),
            f"set {_KEY} to a valid one",
            errors.retry_after(error.response.headers),
        )


def _limit_patience(response: Any) -> None:
    """Stop the SDK from sleeping as long as the answer asks: that may be hours."""
    wait = errors.retry_after(response.headers)
    if wait is not None and wait > errors.PATIENCE_SECONDS:
        response.headers["x-should-retry"] = "false"


def _usage(message: Message) -> TokenUsage:
    usage = message.usage
    read = token_count(usage.cache_read_input_tokens)
    written = token_count(usage.cache_creation_input_tokens)
    return TokenUsage(
        tokens_in=token_count(usage.input_tokens) + read + written,
        tokens_out=token_count(usage.output_tokens),
        cache_read=read,
        cache_written=written,
    )
