"""Any endpoint for chat completions over HTTP: OpenAI, Google, Ollama, LM Studio, and others."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from memkit import llm
from memkit.embedding import excerpt
from memkit.llm import Reply, Task, TokenUsage, as_structure, find_key, token_count
from memkit.settings import SummarizeSettings
from memkit.state import parse_json
from memkit.text import encodable

if TYPE_CHECKING:
    import httpx

_RETRIED = frozenset({408, 409, 429})  # and every status from 500 on


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
# https://docs.ollama.com/api/openai-compatibility
SERVICES: Mapping[str, Service] = {
    "openai": Service(
        "openai",
        "https://api.openai.com/v1",
        "gpt-5-mini",
        ("OPENAI_API_KEY",),
        limit="max_completion_tokens",
        extra={"reasoning_effort": "low"},
    ),
    "google": Service(
        "google",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        "gemini-2.5-flash",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        extra={"reasoning_effort": "none"},
    ),
    "ollama": Service("ollama", "http://127.0.0.1:11434/v1", "llama3.2"),
}


class ChatCompletionsProvider:
    """A chat-completions endpoint. A forced function call makes the answer an object.

    A server without function calls may answer with the JSON of that object. After a failure there are
    up to `retries` more tries. The first waits `pause` seconds and each next one twice as long, or as
    long as the server asks for, up to `PATIENCE_SECONDS`.
    """

    def __init__(
        self,
        service: Service,
        settings: SummarizeSettings,
        environ: Mapping[str, str],
        retries: int = 2,
        pause: float = 0.5,
    ) -> None:
        """Raise `NotConfiguredError` without a key, unless the user set another address (LM Studio, …)."""
        self.name = service.name
        self.model = settings.model or service.model
        self._key = find_key(environ, *service.keys)
        if service.keys and not self._key and not settings.base_url:
            raise llm.NotConfiguredError(
                f"the provider {service.name} needs a key; set the environment variable "
                f"{' or '.join(service.keys)}"
            )
        url = settings.base_url or service.url
        if service.name == "ollama" and not settings.base_url and environ.get("OLLAMA_HOST"):
            host = environ["OLLAMA_HOST"].rstrip("/")
            url = f"{host if '://' in host else f'http://{host}'}/v1"
        self._service = service
        self._url = f"{url.rstrip('/')}/chat/completions"
        self._is_default_url = url == service.url
        self._timeout = settings.timeout_seconds
        self._retries = retries
        self._pause = pause

    def ask(self, task: Task) -> Reply:
        """Make one call; see `Provider.ask`."""
        import httpx

        headers = {"authorization": f"Bearer {self._key}"} if self._key else {}
        # An exception of httpx may hold the request: only one line of it goes on.
        try:
            with httpx.Client(timeout=self._timeout, headers=headers) as client:
                response = self._post(client, self._request(task))
        except httpx.TimeoutException as error:
            was_sent = not isinstance(error, httpx.ConnectTimeout)
            raise llm.timeout_error(self.name, self._timeout, was_sent=was_sent) from None
        except (httpx.UnsupportedProtocol, httpx.InvalidURL, ValueError) as error:
            raise llm.NotConfiguredError(
                f"{self.name} has no usable address ({self._reason(error)}); set summarize.base_url"
            ) from None
        except httpx.RequestError as error:
            host = urlsplit(self._url).netloc.rpartition("@")[2]  # without a name and password
            advice = "memkit tries again later"
            if self.name == "ollama" and self._is_default_url:
                advice = "start it with `ollama serve`"
            raise llm.UnavailableError(
                f"{self.name} at {host} cannot be reached ({self._reason(error)}); {advice}"
            ) from None
        if not response.is_success:
            advice = f"set {' or '.join(self._service.keys) or 'summarize.base_url'} to a valid one"
            reason = excerpt(_error_message(response), self._key)
            wait = llm.retry_after(response.headers)
            raise llm.http_error(self.name, self.model, response.status_code, reason, advice, wait)
        body = _json(response)
        return self._reply(task, body if isinstance(body, dict) else {})

    def _reason(self, error: Exception) -> str:
        return excerpt(str(error) or type(error).__name__, self._key)

    def _post(self, client: httpx.Client, request: dict[str, Any]) -> httpx.Response:
        import httpx

        for number in range(self._retries + 1):
            is_last = number == self._retries
            pause = self._pause * 2**number
            try:
                response = client.post(self._url, json=request)
            except (httpx.TimeoutException, httpx.NetworkError, httpx.RemoteProtocolError):
                if is_last:
                    raise
            else:
                is_temporary = response.status_code in _RETRIED or response.status_code >= 500
                wait = llm.retry_after(response.headers)
                if is_last or not is_temporary or (wait or 0) > llm.PATIENCE_SECONDS:
                    return response
                pause = pause if wait is None else wait
            time.sleep(pause)
        raise AssertionError("the last try returns or raises")

    def _request(self, task: Task) -> dict[str, Any]:
        function = {"name": task.tool, "description": "The answer.", "parameters": task.schema}
        limit = self._service.limit if self._is_default_url else "max_tokens"
        request: dict[str, Any] = {
            "model": self.model,
            limit: task.max_tokens,
            "messages": [
                {"role": "system", "content": encodable(task.instructions)},
                {"role": "user", "content": encodable(task.material)},
            ],
            "tools": [{"type": "function", "function": function}],
            "tool_choice": {"type": "function", "function": {"name": task.tool}},
        }
        if self.model == self._service.model and self._is_default_url:
            request |= self._service.extra
        return request

    def _reply(self, task: Task, body: Mapping[str, Any]) -> Reply:
        usage = _usage(body.get("usage"))
        choice = _first(body.get("choices"))
        message = choice.get("message")
        if not isinstance(message, dict):
            raise llm.unusable(self.name, self.model, "it is empty or unreadable", usage)
        if message.get("refusal") or choice.get("finish_reason") == "content_filter":
            raise llm.RefusedError(f"{self.model} at {self.name} declined to answer", usage)
        if choice.get("finish_reason") == "length":
            raise llm.unusable(self.name, self.model, "it was cut short", usage)
        call = _first(message.get("tool_calls")).get("function")
        answer = call.get("arguments") if isinstance(call, dict) else message.get("content")
        value = as_structure(answer, task.schema)  # some servers send an object, not its JSON
        if value is None:
            why = "it has the wrong structure" if call else "it does not call the function"
            raise llm.unusable(self.name, self.model, why, usage)
        return Reply(value, usage, str(body.get("model") or self.model))


def _json(response: httpx.Response) -> Any:
    try:
        return parse_json(response.content)
    except ValueError:
        return None


def _error_message(response: httpx.Response) -> str:
    """Return the provider's code and message of a failed request, or the HTTP reason."""
    body = _json(response)
    error = _first(body).get("error") if isinstance(body, list) else body
    if isinstance(error, dict):
        error = error.get("error", error)
    if isinstance(error, dict):
        error = ": ".join(str(error[key]) for key in ("code", "message") if error.get(key))
    return error if isinstance(error, str) else response.reason_phrase


def _first(items: object) -> dict[str, Any]:
    """Return the first of `items`, or an empty object if that is not an object."""
    if isinstance(items, list) and items and isinstance(items[0], dict):
        return items[0]
    return {}


def _usage(usage: object) -> TokenUsage:
    if not isinstance(usage, dict):
        return TokenUsage()
    read, total = token_count(usage.get("prompt_tokens")), token_count(usage.get("total_tokens"))
    details = usage.get("prompt_tokens_details")
    cached = token_count(details.get("cached_tokens")) if isinstance(details, dict) else 0
    # Google bills the model's thoughts but does not count them as tokens of the answer.
    written = max(token_count(usage.get("completion_tokens")), total - read)
    return TokenUsage(tokens_in=read, tokens_out=written, cache_read=min(cached, read))
