"""Any endpoint for chat completions: OpenAI, Google, Ollama, LM Studio and their like, over HTTP."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from memkit.llm.model import (
    NotConfiguredError,
    RefusedError,
    Reply,
    Task,
    TokenUsage,
    UnavailableError,
)
from memkit.llm.providers.failures import PATIENCE_SECONDS, failure, retry_after, too_slow, unusable
from memkit.llm.providers.keys import find_key
from memkit.llm.providers.structure import as_structure, count, structure_in
from memkit.llm.providers.text import excerpt, sendable
from memkit.settings import SummarizeSettings
from memkit.state import parse_json

if TYPE_CHECKING:
    import httpx

_RETRIED = frozenset({408, 409, 429})  # and all from 500 on


@dataclass(frozen=True)
class Service:
    """An endpoint that is known by name.

    Attributes:
        name: as in the setting `summarize.provider`.
        url: its usual address.
        model: its usual small model.
        keys: the environment variables that may hold its key, the first one found counts.
        limit: what it calls the longest answer.
        extra: what its usual model is asked besides: to think little, as the answer's tokens are counted
            with those of its thoughts.
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
    service.name: service
    for service in (
        Service(
            "openai",
            "https://api.openai.com/v1",
            "gpt-5-mini",
            ("OPENAI_API_KEY",),
            limit="max_completion_tokens",
            extra={"reasoning_effort": "low"},
        ),
        Service(
            "google",
            "https://generativelanguage.googleapis.com/v1beta/openai",
            "gemini-2.5-flash",
            ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
            extra={"reasoning_effort": "none"},
        ),
        Service("ollama", "http://127.0.0.1:11434/v1", "llama3.2"),
    )
}
"""All of them by name."""


class ChatCompletionsProvider:
    """A chat-completions endpoint, asked for a call of one function, so that the answer is an object.

    A server that knows no functions may answer with the JSON of that object. `url` is the address up
    to `/chat/completions`, `timeout` in seconds, of each try; there are `retries` more, after
    `pause` seconds, then twice that, or what the server asks for if it is not much.
    """

    def __init__(
        self,
        service: Service,
        url: str,
        model: str,
        *,
        key: str = "",
        timeout: float,
        retries: int = 2,
        pause: float = 0.5,
    ) -> None:
        self.name = service.name
        self.model = model
        self._service = service
        self._url = f"{url.rstrip('/')}/chat/completions"
        self._is_elsewhere = url != service.url
        self._key = key
        self._timeout = timeout
        self._retries = retries
        self._pause = pause

    @classmethod
    def configured(
        cls, service: Service, settings: SummarizeSettings, environ: Mapping[str, str]
    ) -> ChatCompletionsProvider:
        """As the user set it up. Raises `NotConfiguredError` if a key is needed and there is none.

        At an address of the user's own (LM Studio, …) none is needed.
        """
        key = find_key(environ, service.keys)
        if service.keys and not key and not settings.base_url:
            raise NotConfiguredError(
                f"the provider {service.name} needs a key; set the environment variable "
                f"{' or '.join(service.keys)}"
            )
        url = settings.base_url or service.url
        if service.name == "ollama" and not settings.base_url and environ.get("OLLAMA_HOST"):
            host = environ["OLLAMA_HOST"].rstrip("/")
            url = f"{host if '://' in host else f'http://{host}'}/v1"
        return cls(
            service,
            url,
            settings.model or service.model,
            key=key,
            timeout=settings.timeout_seconds,
        )

    def ask(self, task: Task) -> Reply:
        """One call; see `Provider.ask`."""
        import httpx

        # Whatever httpx raises may hold the request: only a line of it goes on.
        try:
            with httpx.Client(timeout=self._timeout, headers=self._headers()) as client:
                response = self._post(client, self._request(task))
        except httpx.TimeoutException as error:
            was_asked = not isinstance(error, httpx.ConnectTimeout)
            raise too_slow(self.name, self._timeout, was_asked=was_asked) from None
        except (httpx.UnsupportedProtocol, httpx.InvalidURL, ValueError) as error:
            raise NotConfiguredError(
                f"{self.name} has no usable address ({self._excerpt(error)}); set summarize.base_url"
            ) from None
        except httpx.RequestError as error:
            raise UnavailableError(
                f"{self._place} cannot be reached ({self._excerpt(error)}); {self._start}"
            ) from None
        if not response.is_success:
            said = excerpt(_said(response), self._key)
            advice = f"set {' or '.join(self._service.keys) or 'summarize.base_url'} to a valid one"
            wait = retry_after(response.headers)
            raise failure(self.name, self.model, response.status_code, said, advice, wait)
        return self._reply(task, _body(response))

    def _excerpt(self, error: Exception) -> str:
        return excerpt(str(error) or type(error).__name__, self._key)

    @property
    def _place(self) -> str:
        from urllib.parse import urlsplit

        # Without the name and password that an address may hold.
        return f"{self.name} at {urlsplit(self._url).netloc.rpartition('@')[2]}"

    @property
    def _start(self) -> str:
        if self.name == "ollama" and not self._is_elsewhere:
            return "start it with `ollama serve`"
        return "it is asked again later"

    def _headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self._key}"} if self._key else {}

    def _post(self, client: httpx.Client, request: dict[str, Any]) -> httpx.Response:
        import httpx

        for tries_left in range(self._retries, -1, -1):
            pause = self._pause * 2 ** (self._retries - tries_left)
            try:
                response = client.post(self._url, json=request)
            except (httpx.TimeoutException, httpx.NetworkError, httpx.RemoteProtocolError):
                if not tries_left:
                    raise
            else:
                wait = retry_after(response.headers)
                is_passing = response.status_code in _RETRIED or response.status_code >= 500
                if not (tries_left and is_passing) or (wait or 0) > PATIENCE_SECONDS:
                    return response
                pause = pause if wait is None else wait
            time.sleep(pause)
        raise AssertionError("the last try returns or raises")

    def _request(self, task: Task) -> dict[str, Any]:
        function = {"name": task.tool, "description": "The answer.", "parameters": task.schema}
        limit = "max_tokens" if self._is_elsewhere else self._service.limit
        request: dict[str, Any] = {
            "model": self.model,
            limit: task.max_tokens,
            "messages": [
                {"role": "system", "content": sendable(task.instructions)},
                {"role": "user", "content": sendable(task.material)},
            ],
            "tools": [{"type": "function", "function": function}],
            "tool_choice": {"type": "function", "function": {"name": task.tool}},
        }
        if self.model == self._service.model and not self._is_elsewhere:
            request |= self._service.extra
        return request

    def _reply(self, task: Task, body: Mapping[str, Any]) -> Reply:
        usage = _usage(body.get("usage"))
        choice = _first(body.get("choices"))
        message = choice.get("message")
        if not isinstance(message, dict):
            raise unusable(self.name, self.model, "it is empty or unreadable", usage)
        if message.get("refusal") or choice.get("finish_reason") == "content_filter":
            raise RefusedError(f"{self.model} at {self.name} declined to answer", usage)
        if choice.get("finish_reason") == "length":
            raise unusable(self.name, self.model, "it was cut short", usage)
        call = _first(message.get("tool_calls")).get("function")
        if isinstance(call, dict):
            value = structure_in(call.get("arguments"), task.schema)
            if value is None:  # some servers give the object itself
                value = as_structure(call.get("arguments"), task.schema)
        else:
            value = structure_in(message.get("content"), task.schema)
        if value is None:
            why = "it is not of the structure" if call else "it does not call the function"
            raise unusable(self.name, self.model, why, usage)
        return Reply(value, usage, str(body.get("model") or self.model))


def _body(response: httpx.Response) -> Mapping[str, Any]:
    """The object an answer holds; empty if it holds none."""
    try:
        body = parse_json(response.content)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _said(response: httpx.Response) -> str:
    """The provider's words in an answer that is no success: code and message, as far as there are any."""
    body: Any
    try:
        body = parse_json(response.content)
    except ValueError:
        return response.reason_phrase
    error = _first(body).get("error") if isinstance(body, list) else body
    if isinstance(error, dict):
        error = error.get("error", error)
    if isinstance(error, dict):
        error = ": ".join(str(error[key]) for key in ("code", "message") if error.get(key))
    return error if isinstance(error, str) else response.reason_phrase


def _first(items: object) -> dict[str, Any]:
    """The first of `items`; an empty object if there is none or it is no object."""
    if isinstance(items, list) and items and isinstance(items[0], dict):
        return items[0]
    return {}


def _usage(usage: object) -> TokenUsage:
    if not isinstance(usage, dict):
        return TokenUsage()
    read, total = count(usage.get("prompt_tokens")), count(usage.get("total_tokens"))
    details = usage.get("prompt_tokens_details")
    cached = count(details.get("cached_tokens")) if isinstance(details, dict) else 0
    # Google leaves the tokens of the model's thoughts out of those of its answer, and bills them.
    written = max(count(usage.get("completion_tokens")), total - read)
    return TokenUsage(tokens_in=read, tokens_out=written, cache_read=min(cached, read))
