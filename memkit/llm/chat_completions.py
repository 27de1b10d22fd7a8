"""Chat over HTTP: chat completions (OpenAI, Google, LM Studio, and others), and Ollama's own endpoint."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from memkit import llm
from memkit.embedding import excerpt
from memkit.llm import Reply, Task, TokenUsage, as_structure, token_count
from memkit.settings import SummarizeSettings
from memkit.settings.load import KEY_VARIABLES, find_key, how_to_set
from memkit.state import parse_json
from memkit.text import encodable, estimate_tokens

if TYPE_CHECKING:
    import httpx

_OLLAMA_STEP = 8_192
"""The context for Ollama is a multiple of this, because Ollama reloads the model for each new length."""

_OLLAMA_SPARE = 1.5
"""The factor between estimated tokens and the context: some tokenizers need more tokens than estimated."""


@dataclass(frozen=True)
class Service:
    """An endpoint that memkit knows by name.

    Attributes:
        name: as in the setting `summarize.provider`.
        url: its default address.
        model: its default small model.
        keys: the environment variables that may hold its key; the first one that is set counts.
        limit: its name for the longest answer.
        extra: more parameters for its default model, to keep it from thinking long: thoughts count as
            tokens of the answer.
    """

    name: str
    url: str
    model: str
    keys: tuple[str, ...] = ()
    limit: str = "max_tokens"
    extra: Mapping[str, str] = field(default_factory=dict)


# https://platform.openai.com/docs/api-reference/chat, https://ai.google.dev/gemini-api/docs/openai,
# https://docs.ollama.com/api/chat
SERVICES: Mapping[str, Service] = {
    "openai": Service(
        "openai", "https://api.openai.com/v1", "gpt-5.4-mini", KEY_VARIABLES["openai"],
        limit="max_completion_tokens",
        extra={"reasoning_effort": "none"},  # with another effort OpenAI refuses functions here
    ),
    "google": Service(
        "google", "https://generativelanguage.googleapis.com/v1beta/openai", "gemini-3.5-flash-lite",
        KEY_VARIABLES["google"], extra={"reasoning_effort": "minimal"},
    ),
    "ollama": Service("ollama", "http://127.0.0.1:11434", "llama3.2"),
}  # fmt: skip


class ChatCompletionsProvider:
    """A chat-completions endpoint. A forced function call makes the answer an object.

    A server without function calls may answer with the JSON of that object. Ollama has an endpoint of its
    own, where the answer follows the schema and the length of the context can be set: at its endpoint for
    chat completions it cuts the material to a few thousand tokens without a word.
    """

    def __init__(self, service: Service, settings: SummarizeSettings, environ: Mapping[str, str]) -> None:
        """Raise `NotConfiguredError` without a key, unless the user set another address (LM Studio, …)."""
        self.name = service.name
        self.model = settings.model or service.model
        self._key = find_key(environ, service.keys, llm.NotConfiguredError)
        if service.keys and not self._key and not settings.base_url:
            raise llm.NotConfiguredError(
                f"the provider {service.name} needs a key; {how_to_set(service.name)}"
            )
        url = settings.base_url or service.url
        self._is_ollama = service.name == "ollama"
        if self._is_ollama:
            url = url if settings.base_url else _ollama_address(environ.get("OLLAMA_HOST", "")) or url
            url = url.rstrip("/").removesuffix("/v1")
        path = "api/chat" if self._is_ollama else "chat/completions"
        self._service = service
        self._url = f"{url.rstrip('/')}/{path}"
        self._is_default_url = url == service.url
        self._timeout = settings.timeout_seconds

    def ask(self, task: Task) -> Reply:
        """Make one call; see `Provider.ask`."""
        import httpx

        headers = {"authorization": f"Bearer {self._key}"} if self._key else {}
        # An exception of httpx may hold the request: only one line of it goes on.
        try:
            with httpx.Client(timeout=self._timeout, headers=headers) as client:
                response = client.post(self._url, json=self._request(task))
        except httpx.TimeoutException as error:
            raise llm.timeout_error(self.name, self._timeout, llm.usage_after(error)) from None
        except (httpx.UnsupportedProtocol, httpx.InvalidURL, ValueError) as error:
            raise llm.NotConfiguredError(
                f"{self.name} has no usable address ({self._reason(error)}); set summarize.base_url"
            ) from None
        except httpx.RequestError as error:
            host = urlsplit(self._url).netloc.rpartition("@")[2]  # without a name and password
            advice = "memkit tries again later"
            if self._is_ollama and self._is_default_url:
                advice = "start it with `ollama serve`"
            raise llm.UnavailableError(
                f"{self.name} at {host} cannot be reached ({self._reason(error)}); {advice}",
                llm.usage_after(error),
            ) from None
        if self._is_ollama and response.status_code == 404:
            raise llm.NotConfiguredError(
                f"ollama has no model {self.model} (404); run `ollama pull {shlex.quote(self.model)}` or set "
                "summarize.model"
            )
        if not response.is_success:
            advice = how_to_set(self.name) if self._service.keys else "set summarize.base_url to a valid one"
            reason = excerpt(_error_message(response), self._key)
            wait = llm.retry_after(response.headers)
            raise llm.http_error(self.name, self.model, response.status_code, reason, advice, wait)
        body = _json(response)
        return self._reply(task, body if isinstance(body, dict) else {})

    def _reason(self, error: Exception) -> str:
        return excerpt(str(error) or type(error).__name__, self._key)

    def _request(self, task: Task) -> dict[str, Any]:
        told = {"role": "system", "content": encodable(task.instructions)}
        shown = {"role": "user", "content": encodable(task.material)}
        request: dict[str, Any] = {"model": self.model, "messages": [told, shown]}
        if self._is_ollama:
            return request | _ollama_options(task)
        function = {"name": task.tool, "description": "The answer.", "parameters": task.schema}
        request["tools"] = [{"type": "function", "function": function}]
        request["tool_choice"] = {"type": "function", "function": {"name": task.tool}}
        request[self._service.limit if self._is_default_url else "max_tokens"] = task.max_tokens
        if self.model == self._service.model and self._is_default_url:
            request |= self._service.extra
        return request

    def _reply(self, task: Task, body: Mapping[str, Any]) -> Reply:
        if self._is_ollama:  # it has its own field names
            message, end = body.get("message"), body.get("done_reason")
            usage = TokenUsage(
                token_count(body.get("prompt_eval_count")), token_count(body.get("eval_count"))
            )
        else:
            choice = _first(body.get("choices"))
            message, end = choice.get("message"), choice.get("finish_reason")
            usage = _usage(body.get("usage"))
        if not isinstance(message, dict):
            raise llm.unusable(self.name, self.model, "it is empty or unreadable", usage)
        if message.get("refusal") or end == "content_filter":
            raise llm.refused(self.name, self.model, usage)
        if end == "length":
            raise llm.unusable(self.name, self.model, "it was cut short", usage)
        call = _first(message.get("tool_calls")).get("function")
        answer = call.get("arguments") if isinstance(call, dict) else message.get("content")
        value = as_structure(answer, task.schema)  # some servers send an object, not its JSON
        if value is None:
            has_form = call or self._is_ollama
            why = "it has the wrong structure" if has_form else "it does not call the function"
            raise llm.unusable(self.name, self.model, why, usage)
        return Reply(value, usage, str(body.get("model") or self.model))


def _ollama_address(host: str) -> str:
    if not host or "://" in host:
        return host
    has_port = host.rpartition(":")[2].isdigit() and not host.endswith("]")
    return f"http://{host}" if has_port else f"http://{host}:11434"


def _ollama_options(task: Task) -> dict[str, Any]:
    read = estimate_tokens(task.instructions) + estimate_tokens(task.material)
    needed = int(read * _OLLAMA_SPARE) + task.max_tokens
    return {
        "stream": False,
        "format": task.schema,
        "think": False,
        # Newer servers refuse material that is too long for the model, instead of cutting it silently.
        "truncate": False,
        "shift": False,
        "options": {"num_ctx": -(-needed // _OLLAMA_STEP) * _OLLAMA_STEP, "num_predict": task.max_tokens},
    }


def _json(response: httpx.Response) -> Any:
    try:
        return parse_json(response.content)
    except ValueError:
        return None


def _error_message(response: httpx.Response) -> str:
    body = _json(response)
    error = _first(body).get("error") if isinstance(body, list) else body
    if isinstance(error, dict):
        error = error.get("error", error)
    if isinstance(error, dict):
        error = ": ".join(str(error[key]) for key in ("code", "message") if error.get(key))
    return error if isinstance(error, str) else response.reason_phrase


def _first(items: object) -> dict[str, Any]:
    if isinstance(items, list) and items and isinstance(items[0], dict):
        return items[0]
    return {}


def _usage(usage: object) -> TokenUsage:
    if not isinstance(usage, dict):
        return TokenUsage()
    read, total = token_count(usage.get("prompt_tokens")), token_count(usage.get("total_tokens"))
    details = usage.get("prompt_tokens_details")
    cached = token_count(details.get("cached_tokens")) if isinstance(details, dict) else 0
    if cached > read:  # some servers do not count cached tokens as read
        read += cached
    # Google bills the model's thoughts but does not count them as tokens of the answer.
    written = max(token_count(usage.get("completion_tokens")), total - read)
    return TokenUsage(tokens_in=read, tokens_out=written, cache_read=cached)
