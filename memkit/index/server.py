"""The connection to a Chroma server, or to Chroma Cloud.

A process keeps one connection for passes and one for searches, which wait for less time. A server that does
not answer is left alone for a moment, so that a search loses `ANSWER_SECONDS` once.

Where rows go is the user's decision alone: address, names, and token come from the user's own settings and
environment, which `memkit.settings.load` and `memkit.projects.trust` see to.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx  # Chroma's own

from memkit.embedding import import_chroma
from memkit.errors import IndexStoreError
from memkit.paths import Home
from memkit.settings import CLOUD, IndexSettings
from memkit.settings.load import KEY_VARIABLES, find_key, how_to_set, load, with_keys
from memkit.text import one_line, shorten

if TYPE_CHECKING:
    from chromadb.api.models.Collection import Collection
    from chromadb.config import Settings as ChromaSettings

CLOUD_ADDRESS = "https://api.trychroma.com:443"
CLOUD_HEADER = "X-Chroma-Token"

ANSWER_SECONDS = 1.0
"""The time limit for the first answer of a server, and for a query: Chroma's client would wait forever."""

WORK_SECONDS = 30.0
"""The time limit for the calls of a pass."""

AWAY_SECONDS = 10.0
"""The time for which a server that did not answer is not asked again."""

PAUSES = (0.1, 0.5)
"""Seconds before a call of a pass is repeated. All of them can be: they name the rows by id."""

WORK_CALLS = SEARCH_CALLS = 4
"""Concurrent calls of one process, by passes and by searches. Chroma Cloud accepts ten, and a command may run
next to the service.
"""

_BUSY = frozenset((429, 502, 503, 504))
_DEFAULT_PORT = 8000


@dataclass(frozen=True)
class _Target:
    """The server, and what a request to it has. `header` holds the token, or is empty."""

    address: str
    header: tuple[tuple[str, str], ...]
    tenant: str
    database: str
    shown: str

    def __repr__(self) -> str:
        return f"_Target({self.shown!r})"


class ServerClient:
    """Finds collections on a server, in one tenant and database. Several threads may use it at once."""

    def __init__(self, api: Any, tenant: str, database: str) -> None:
        self._api = api
        self._place = {"tenant": tenant, "database": database}

    def get_collection(self, name: str, **_: object) -> Collection:
        """Return a collection. Raise `chromadb.errors.NotFoundError`."""
        return self._made(self._api.get_collection(name, **self._place))

    def get_or_create_collection(self, name: str, *, configuration: Any, **_: object) -> Collection:
        """Return a collection, after creating it if there is none."""
        return self._made(
            self._api.get_or_create_collection(name, configuration=configuration, **self._place)
        )

    def close(self) -> None:
        """Do nothing: the process keeps the connection."""

    def _made(self, model: Any) -> Collection:
        from chromadb.api.models.Collection import Collection

        return Collection(client=self._api, model=model, embedding_function=None)


_clients: dict[tuple[_Target, bool], ServerClient] = {}
_away: dict[_Target, tuple[float, str]] = {}
_guard = threading.Lock()


def connect(home: Home, uri: str, *, for_search: bool = False) -> ServerClient:
    """Return the connection to the server of `index.uri`. Raise `IndexStoreError`.

    A server that is away costs at most `ANSWER_SECONDS`, and nothing for `AWAY_SECONDS` after that.
    """
    target = _target(home, uri)
    with _guard:
        until, problem = _away.get(target, (0.0, ""))
        if time.monotonic() < until:
            raise IndexStoreError(problem)
        found = _clients.get((target, for_search))
        if found is not None and for_search:
            return found
        try:
            tenant, database = _identity(target)
            if found is None:
                found = _clients[target, for_search] = ServerClient(
                    _api(target, for_search), tenant, database
                )
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, TypeError, OSError) as error:
            problem = f"cannot reach the Chroma server of index.uri = {target.shown!r}: {_reason(error)}"
            _away[target] = (time.monotonic() + AWAY_SECONDS, problem)
            raise IndexStoreError(problem) from error
    return found


def note_away(home: Home, uri: str, problem: str) -> None:
    """Leave a server alone for a moment that did not answer a query."""
    with _guard:
        _away[_target(home, uri)] = (time.monotonic() + AWAY_SECONDS, problem)


def reset() -> None:
    """Forget all connections, and which servers were away."""
    with _guard:
        _clients.clear()
        _away.clear()


def _target(home: Home, uri: str) -> _Target:
    settings = load(home).settings
    own: IndexSettings = settings.index
    token = ""
    if own.token_env:
        token = find_key(os.environ, (own.token_env,), IndexStoreError)
    if uri == CLOUD:
        token = token or find_key(with_keys(os.environ, home), KEY_VARIABLES["chroma"], IndexStoreError)
        if not token:
            raise IndexStoreError(f"Chroma Cloud needs a key; {how_to_set('chroma')}")
        return _Target(CLOUD_ADDRESS, ((CLOUD_HEADER, token),), own.tenant, own.database, uri)
    # Not CHROMA_API_KEY: no server of another kind gets the key of Chroma Cloud.
    token = token or settings.keys.chroma
    if own.token_env and not token:
        raise IndexStoreError(
            f"index.token_env names {own.token_env}, which is not set here; set it, or run "
            "`memkit config set keys.chroma` in your own terminal"
        )
    value = f"Bearer {token}" if own.token_header.lower() == "authorization" else token
    parts = urlsplit(uri)
    port = parts.port or (443 if parts.scheme == "https" else _DEFAULT_PORT)
    host = f"[{parts.hostname}]" if ":" in str(parts.hostname) else parts.hostname
    header = ((own.token_header, value),) if token else ()
    return _Target(f"{parts.scheme}://{host}:{port}", header, own.tenant, own.database, uri)


def _identity(target: _Target) -> tuple[str, str]:
    """Return the tenant and the database to use: those of the settings, else those of the token."""
    response = httpx.get(
        f"{target.address}/api/v2/auth/identity", headers=dict(target.header), timeout=ANSWER_SECONDS
    )
    response.raise_for_status()
    identity = response.json()
    databases = [one for one in identity.get("databases") or [] if one != "*"]
    tenant = target.tenant or str(identity.get("tenant") or "").strip("*") or "default_tenant"
    database = target.database
    if not database:
        if len(databases) > 1:
            raise ValueError("the token is for several databases; set index.database to one of them")
        database = str(databases[0]) if databases else "default_database"
    return tenant, database


def _api(target: _Target, for_search: bool) -> Any:
    """Return Chroma's own client of the HTTP API, with time limits."""
    settings = chroma_settings()
    from chromadb.api import ServerAPI
    from chromadb.config import System

    parts = urlsplit(target.address)
    settings.chroma_api_impl = "chromadb.api.fastapi.FastAPI"
    settings.chroma_server_host = parts.hostname
    settings.chroma_server_http_port = parts.port
    settings.chroma_server_ssl_enabled = parts.scheme == "https"
    settings.chroma_server_headers = dict(target.header)
    api: Any = System(settings).instance(ServerAPI)  # type: ignore[type-abstract]
    # Chroma's session has no time limit, and no setting for one.
    before = api._session
    calls = SEARCH_CALLS if for_search else WORK_CALLS
    api._session = (httpx.Client if for_search else _Repeating)(
        headers=before.headers,
        limits=httpx.Limits(max_connections=calls, max_keepalive_connections=calls),
        timeout=ANSWER_SECONDS if for_search else httpx.Timeout(WORK_SECONDS, connect=ANSWER_SECONDS),
    )
    before.close()
    return api


def chroma_settings() -> ChromaSettings:
    """Return settings for a client that sends no telemetry and reads no file of the working directory."""
    import_chroma()
    from chromadb.config import Settings

    return Settings(anonymized_telemetry=False, _env_file=None)  # type: ignore[call-arg]


class _Repeating(httpx.Client):
    def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        for pause in PAUSES:
            try:
                response = super().send(request, **options)
            except (httpx.NetworkError, httpx.RemoteProtocolError):
                pass
            else:
                if response.status_code not in _BUSY:
                    return response
                response.close()
            time.sleep(pause)
        return super().send(request, **options)


def _reason(error: BaseException) -> str:
    if isinstance(error, httpx.HTTPStatusError):
        status = error.response.status_code
        if status in (401, 403):
            return f"it refuses the token (HTTP {status}); see index.token_env and keys.chroma"
        return f"HTTP {status}"
    if isinstance(error, httpx.TimeoutException):
        return f"no answer within {ANSWER_SECONDS:g} s"
    return shorten(one_line(f"{type(error).__name__}: {error}"), 300)
