"""Anthropic's Messages API through its SDK."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from memkit import llm
from memkit.embedding import excerpt
from memkit.llm import Reply, Task, anthropic_usage, as_structure
from memkit.settings import SummarizeSettings
from memkit.settings.load import KEY_VARIABLES, find_key, how_to_set
from memkit.text import encodable

if TYPE_CHECKING:
    import anthropic
    from anthropic.types import Message

DEFAULT_MODEL = "claude-haiku-4-5"

_KEY, _TOKEN = KEY_VARIABLES["anthropic"]


class AnthropicProvider:
    """The Messages API. A forced tool call makes the answer an object."""

    name = "anthropic"

    def __init__(self, settings: SummarizeSettings, environ: Mapping[str, str]) -> None:
        """Raise `NotConfiguredError` if there is no key."""
        self.model = settings.model or DEFAULT_MODEL
        self._key = find_key(environ, (_KEY,), llm.NotConfiguredError)
        self._token = "" if self._key else find_key(environ, (_TOKEN,), llm.NotConfiguredError)
        if not (self._key or self._token):
            raise llm.NotConfiguredError(f"the provider anthropic needs a key; {how_to_set('anthropic')}")
        self._base_url = settings.base_url or environ.get("ANTHROPIC_BASE_URL", "")
        self._timeout = settings.timeout_seconds

    def ask(self, task: Task) -> Reply:
        """Make one call; see `Provider.ask`."""
        import anthropic  # takes up to two seconds

        unreadable = llm.UnusableReplyError(
            f"{self.name} gave an unreadable answer; check summarize.base_url", usage=None
        )
        # An exception of the SDK may hold the request or the key: only one line of it goes on.
        try:
            with anthropic.Anthropic(
                api_key=self._key or None, auth_token=self._token or None, base_url=self._base_url or None,
                timeout=self._timeout, max_retries=0,
            ) as client:
                message = client.messages.create(**self._request(task))
        except anthropic.APIStatusError as error:
            raise self._status_error(error) from None
        except anthropic.APITimeoutError as error:
            raise llm.timeout_error(self.name, self._timeout, llm.usage_after(error.__cause__)) from None
        except anthropic.APIConnectionError as error:
            reason = excerpt(str(error.__cause__ or error), self._key, self._token)
            raise llm.UnavailableError(
                f"{self.name} cannot be reached ({reason}); memkit tries again later",
                llm.usage_after(error.__cause__),
            ) from None
        except (anthropic.AnthropicError, ValueError):
            raise unreadable from None
        if not isinstance(message, anthropic.types.Message):
            raise unreadable
        return self._reply(task, message)

    def _request(self, task: Task) -> dict[str, Any]:
        # The API caches the tool and these instructions if they reach the model's minimum length.
        instructions = {
            "type": "text", "text": encodable(task.instructions), "cache_control": {"type": "ephemeral"}
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
        usage = anthropic_usage(vars(message.usage))
        if message.stop_reason == "refusal":
            raise llm.refused(self.name, message.model, usage)
        if message.stop_reason in ("max_tokens", "model_context_window_exceeded"):
            raise llm.unusable(self.name, self.model, "it was cut short", usage)
        for block in message.content or ():
            if block.type == "tool_use" and block.name == task.tool:
                value = as_structure(block.input, task.schema)
                if value is None:
                    raise llm.unusable(self.name, self.model, "it has the wrong structure", usage)
                return Reply(value, usage, message.model or self.model)
        raise llm.unusable(self.name, self.model, "it does not call the tool", usage)

    def _status_error(self, error: anthropic.APIStatusError) -> llm.ModelError:
        reason = error.message
        if isinstance(error.body, dict) and isinstance(error.body.get("error"), dict):
            reason = str(error.body["error"].get("message", ""))
        reason, wait = excerpt(reason, self._key, self._token), llm.retry_after(error.response.headers)
        return llm.http_error(self.name, self.model, error.status_code, reason, how_to_set("anthropic"), wait)
