"""All settings: each one's type, bounds, description, and default.

A class made directly checks only what its `__post_init__` checks. `memkit.settings.load.validate` checks
and converts everything.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from msgspec import Meta, Struct
from msgspec.structs import force_setattr

from memkit.errors import SettingError
from memkit.login import DEFAULT_TOKENS
from memkit.paths import MEMORY_DIRECTORY

CLOUD = "cloud"
"""The value of `index.uri` for Chroma Cloud."""

AUTO = "auto"
"""The value of `embedding.query_prefix` and `passage_prefix` for the prefix that the model expects, and of
`summarize.provider` for the user's own Claude Code."""

LOCAL_PROVIDERS = ("local", "multilingual", "sentence-transformers")
"""Embedding providers that send nothing and cost nothing."""

_LOCAL_MODEL = "all-MiniLM-L6-v2"
_DEFAULT_MODELS = {
    "multilingual": "multilingual-e5-small",
    "openai": "text-embedding-3-small",
    "google": "gemini-embedding-001",
    "voyage": "voyage-3.5",
    "ollama": "nomic-embed-text",
}


class MemorySettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The Markdown files of the memory."""

    paths: Annotated[
        tuple[str, ...],
        "files and directories to index, relative to the project; the default also finds OpenClaw's "
        "MEMORY.md and memory/",
    ] = (Path(MEMORY_DIRECTORY).as_posix(),)
    exclude: Annotated[tuple[str, ...], "patterns of files not to index"] = ()
    claude_code: Annotated[
        bool, "also search Claude Code's own memory of a project, without changing it"
    ] = True
    shared: Annotated[
        bool, "let git see the memory of every project; else .memkit/.gitignore hides it"
    ] = False
    keep_days: Annotated[
        int, Meta(ge=0, le=36_500), "delete days older than this many days, with your notes in them; 0: never"
    ] = 0


class CaptureSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Redaction and exclusion while sessions are captured."""

    redact: Annotated[tuple[str, ...], "your own regular expressions; memkit redacts text that matches"] = ()
    redact_financial: Annotated[bool, "also redact card numbers and IBANs with valid check digits"] = False
    exclude: Annotated[
        tuple[str, ...],
        "paths and patterns (absolute, with ~, or relative to the project): memkit skips sessions there and"
        " tool calls on such files",
    ] = ()
    agents: Annotated[
        tuple[Literal["codex", "copilot", "cursor", "gemini", "opencode"], ...],  # as in agents.registry
        "other agents whose new sessions the service captures: codex, copilot, cursor, gemini, opencode",
    ] = ()

    def __post_init__(self) -> None:
        for pattern in self.redact:
            try:
                re.compile(pattern)
            except re.error as error:
                reason = f"{pattern!r} is not a regular expression: {error}"
                raise SettingError(reason, "redact") from error

    def compiled_patterns(self) -> list[re.Pattern[str]]:
        """Return the user's patterns, and the one for financial numbers if it is on, compiled."""
        from memkit.privacy.redact import FINANCIAL  # not all who read settings redact

        financial = [FINANCIAL] if self.redact_financial else []
        return [re.compile(pattern) for pattern in [*self.redact, *financial]]


class ArchiveSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Original exchanges, kept after Claude Code deletes its transcripts."""

    enabled: Annotated[bool, "keep the original exchanges, redacted"] = True
    keep_days: Annotated[
        int, Meta(ge=0, le=36_500), "delete a session this many days after its last turn; 0: never"
    ] = 0


class ChunkingSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Splitting Markdown into chunks."""

    max_characters: Annotated[int, Meta(ge=200, le=100_000), "longest chunk, in characters"] = 1500
    min_characters: Annotated[
        int, Meta(ge=0, le=10_000), "join shorter chunks, in characters, with a neighbor"
    ] = 100
    overlap_lines: Annotated[int, Meta(ge=0, le=20), "lines to repeat after a split"] = 2

    def __post_init__(self) -> None:
        # Else a fragment and half a full chunk might not fit into one.
        if 4 * self.min_characters > self.max_characters:
            raise SettingError(
                f"min_characters = {self.min_characters} is more than a quarter of "
                f"max_characters = {self.max_characters}"
            )


class EmbeddingSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The model that turns text into vectors."""

    provider: Annotated[
        Literal[
            "local", "multilingual", "sentence-transformers", "openai", "google", "voyage", "ollama", "none"
        ],
        "local (MiniLM on ONNX), multilingual (E5 on ONNX), sentence-transformers, openai, google, voyage, "
        "ollama, or none",
    ] = "local"
    model: Annotated[str, "the model's name; empty: the provider's default"] = ""
    query_prefix: Annotated[
        str, Meta(max_length=200), "text before a query; auto: what the model expects"
    ] = AUTO
    passage_prefix: Annotated[
        str, Meta(max_length=200), "text before a chunk; auto: what the model expects"
    ] = AUTO
    download: Annotated[bool, "download the local model (91 MB, once) if it is missing"] = True
    base_url: Annotated[
        str,
        "another address for openai (any server with its embeddings API, or your endpoint at Azure OpenAI) "
        "or ollama; empty: the provider's own",
    ] = ""
    azure_deployment: Annotated[str, "the name of your deployment at Azure OpenAI; empty: not at Azure"] = ""
    azure_api_version: Annotated[str, "the version of Azure OpenAI's API"] = "2024-10-21"

    def __post_init__(self) -> None:
        if self.base_url and not _is_server(self.base_url):
            raise SettingError(
                "must be http(s)://host, maybe with a port and a path, without a password", "base_url"
            )
        for name in ("azure_deployment", "azure_api_version"):  # parts of an address
            if not re.fullmatch(r"[A-Za-z0-9._-]{0,64}", getattr(self, name)):
                raise SettingError("must be letters, digits, and . _ -", name)
        # Else text would go to another place than the user named. A model on this machine sends none.
        if self.base_url and self.provider in ("google", "voyage"):
            raise SettingError("base_url is for the providers openai and ollama only")
        is_at_azure = self.provider == "openai" and self.base_url
        is_a_service = self.provider not in (*LOCAL_PROVIDERS, "none")
        if self.azure_deployment and is_a_service and not is_at_azure:
            raise SettingError("azure_deployment needs provider = openai and base_url = your Azure endpoint")
        # The local model's name is the default. With another provider it means that none was chosen.
        if self.model in ("", _LOCAL_MODEL):
            force_setattr(self, "model", _DEFAULT_MODELS.get(self.provider, _LOCAL_MODEL))


class IndexSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Storage of the vectors."""

    uri: Annotated[str, "empty: MEMKIT_HOME/index; an absolute path; http(s)://host:port; or cloud"] = ""
    token_env: Annotated[
        str,
        "the name of the variable with the token of the Chroma server, never the token; empty or not set: "
        "keys.chroma",
    ] = ""
    token_header: Annotated[
        str,
        "the header that carries the token to a server: Authorization (as Bearer), or the name of another "
        "one",
    ] = "Authorization"
    tenant: Annotated[str, "the tenant on the server or in the cloud; empty: the one of the token"] = ""
    database: Annotated[str, "the database on the server or in the cloud; empty: the one of the token"] = ""

    def __post_init__(self) -> None:
        if not _is_index_uri(self.uri):
            raise SettingError("must be an absolute path, http(s)://host:port, or cloud", "uri")
        if not re.fullmatch(r"([A-Za-z_][A-Za-z0-9_]{0,99})?", self.token_env):
            raise SettingError("must be the name of a variable, not the token", "token_env")
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9-]{0,99}", self.token_header):
            raise SettingError("must be the name of a header", "token_header")
        for name in ("tenant", "database"):  # parts of an address
            if not re.fullmatch(r"([A-Za-z0-9][A-Za-z0-9._-]{0,127})?", getattr(self, name)):
                raise SettingError("must be letters, digits, and . _ -", name)

    @property
    def place(self) -> str:
        """The identity of the store: its address, and on a server the tenant and the database."""
        named = [self.tenant, self.database] if is_server(self.uri) else []
        return "/".join([self.uri, *named]) if any(named) else self.uri


def is_server(uri: str) -> bool:
    """Return whether `index.uri` names a Chroma server or Chroma Cloud, not a directory."""
    return uri == CLOUD or urlsplit(uri).scheme in ("http", "https")


def _is_index_uri(uri: str) -> bool:
    try:
        parts = urlsplit(uri)
        if parts.scheme in ("http", "https"):
            return _is_server(uri) and parts.path in ("", "/")
        # A relative path would mean a different index in each directory.
        return uri in ("", CLOUD) or Path(uri).expanduser().is_absolute()
    except (ValueError, RuntimeError):  # a bad address or port, an unknown user
        return False


def _is_server(url: str) -> bool:
    try:
        parts = urlsplit(url)
        is_plain = url.isascii() and url.isprintable() and " " not in url
        is_plain = is_plain and "@" not in parts.netloc and not parts.query and not parts.fragment
        return is_plain and parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a bad address or port
        return False


class SearchSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Ranking of results; `memkit.search.fusion` has the formulas."""

    mode: Annotated[
        Literal["context", "rrf", "weighted", "lexical", "dense"], "context, rrf, weighted, lexical, or dense"
    ] = "context"
    k: Annotated[int, Meta(ge=1, le=1000), "number of results"] = 5
    user_memory: Annotated[
        bool, "also search MEMKIT_HOME/memory, which holds what is true across projects"
    ] = True
    language: Annotated[str, "language of the Snowball stemmer"] = "english"
    best_relevance: Annotated[
        float, Meta(ge=0, le=1), "return nothing unless the best match is at least this relevant"
    ] = 0.32
    recency_boost: Annotated[
        float, Meta(ge=0, le=10), "raise the score of today's entries by this share; 0: ignore age"
    ] = 0
    half_life_days: Annotated[
        float, Meta(ge=0.1, le=36_500), "days after which an entry's recency has halved"
    ] = 30
    domains: Annotated[
        tuple[str, ...],
        'which directory of the memory is about which directory of code: "src/billing=docs/billing"; by '
        "default, directories of the same name match",
    ] = ()

    def __post_init__(self) -> None:
        for domain in self.domains:
            code, _, memory = domain.partition("=")
            if not code.strip("/ ") or not memory.strip("/ "):
                reason = f"{domain!r} is not of the form code/directory=memory/directory"
                raise SettingError(reason, "domains")
        if self.language != "english":
            import snowballstemmer  # slow to import, and the default needs no check

            known = sorted(snowballstemmer.algorithms())
            if self.language not in known:
                raise SettingError(f"no stemmer for it; there are {', '.join(known)}", "language")


class RecallSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Text that Claude gets from the memory."""

    budget_tokens: Annotated[
        int, Meta(ge=100, le=100_000), "most tokens that the skill's first search returns"
    ] = 2000
    session_start: Annotated[
        Literal["guide", "entries", "both", "off"],
        "what to show Claude at the start of a session: a guide (when asking the memory pays, facts, and "
        "open questions), the newest entries, both, or nothing (off)",
    ] = "guide"
    other_projects: Annotated[
        bool,
        "let commands that Claude runs read other projects too (--project, --all-projects, their ids and "
        "transcripts); your own terminal always can",
    ] = False
    inject: Annotated[
        Literal["pointers", "hint", "off"],
        "what to add to a prompt: pointers to matching memories, a hint that there is a memory, or nothing "
        "(off)",
    ] = "pointers"
    on_failure: Annotated[
        bool, "when a command fails, show Claude how an earlier turn got past the same error"
    ] = True
    on_edit: Annotated[bool, "before a session first edits a file, show Claude a decision about it"] = True
    on_agent: Annotated[bool, "tell a sub-agent that there is a memory, with pointers for its task"] = True


class ServiceSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The background process that keeps index and model loaded."""

    enabled: Annotated[bool, "run the background service; without it, each command works alone"] = True
    idle_minutes: Annotated[
        float, Meta(ge=0, le=1440), "stop this many minutes after the last session or request"
    ] = 10


MOST_DEBOUNCE_MS = 10_000
"""The longest pause to wait for: after this time, the files are listed anyway."""


class WatchSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Noticing edits of the memory's files: by the service, and by `memkit watch`."""

    debounce_ms: Annotated[
        int, Meta(ge=10, le=MOST_DEBOUNCE_MS),
        "update the index when the files have not changed for this many milliseconds",
    ] = 1500


class SummarizeSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bullets above the digests, written by a model. By default, the one of your own Claude Code."""

    provider: Annotated[
        Literal["none", "auto", "anthropic", "claude-cli", "openai", "google", "ollama"],
        "none, auto (claude-cli where Claude Code is logged in, else none), anthropic, claude-cli, openai, "
        "google, or ollama",
    ] = "auto"
    model: Annotated[str, "the model's name; empty: the provider's default small model"] = ""
    base_url: Annotated[str, "another address, as for LM Studio; empty: the provider's own"] = ""
    prompt_file: Annotated[str, "a file that says what to write and how, for bullets and facts alike"] = ""
    mode: Annotated[
        Literal["segment", "turn", "off"],
        "segment (a stretch of work), turn (each turn by itself), or off (no extracts)",
    ] = "segment"
    silence_minutes: Annotated[float, Meta(ge=1, le=1440), "minutes of silence that end a segment"] = 30
    segment_tokens: Annotated[int, Meta(ge=500, le=100_000), "longest segment, in tokens"] = 4000
    overlap_minutes: Annotated[
        float, Meta(ge=0, le=1440), "minutes before a segment that the model sees as context"
    ] = 5
    overlap_tokens: Annotated[int, Meta(ge=0, le=10_000), "most tokens of that context"] = 500
    wait_minutes: Annotated[
        float, Meta(ge=0, le=1440), "most minutes that a segment waits on its day for a full call"
    ] = 240
    share_calls: Annotated[bool, "let one call serve several of your projects, each in its own part"] = True
    daily_tokens: Annotated[
        int, Meta(ge=0), "most tokens per day, input and output; the rest waits for the next day"
    ] = DEFAULT_TOKENS
    daily_usd: Annotated[float, Meta(ge=0), "most dollars per day, where prices are known; 0: no limit"] = 0
    timeout_seconds: Annotated[float, Meta(ge=1, le=3600), "most seconds for one call"] = 120
    compact_days: Annotated[
        int, Meta(ge=0, le=3660), "days between automatic compactions into facts; 0: never"
    ] = 0

    @property
    def why_off(self) -> str:
        """Why no model writes summaries, or "" if one does."""
        if self.provider == "none":
            return "summarize.provider is none"
        if self.mode == "off":
            return "summarize.mode is off"
        if self.provider != AUTO:
            return ""
        from memkit import login

        return login.why_unusable()

    @property
    def why_on(self) -> str:
        """Who writes summaries, and with what login, if a model does."""
        if self.provider != AUTO:
            return f"by {self.provider}"
        from memkit import login

        return f"by claude-cli with {login.way_in()}"

    @property
    def is_on(self) -> bool:
        """Whether anything is to be summarized."""
        return not self.why_off

    @property
    def wants_extracts(self) -> bool:
        """Whether live segments get lines made without a model, since no model will summarize them."""
        return not self.is_on and self.mode != "off"


OnOff = Literal["on", "off"]


class JobSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whether recurring jobs run: `on` or `off`."""

    reconcile: Annotated[OnOff, "every 10 minutes: capture what crashed sessions left in transcripts"] = "on"
    retry: Annotated[OnOff, "every 6 hours: try failed events again"] = "on"
    health: Annotated[OnOff, "every hour: look for problems to report to you"] = "on"
    index: Annotated[OnOff, "daily: update the index of every project"] = "on"
    tidy: Annotated[OnOff, "daily: clean up what has expired, and free disk space"] = "on"
    rollup: Annotated[OnOff, "daily: have a model condense closed weeks, months, and years"] = "on"
    sync: Annotated[OnOff, "every hour: sync with your other machines, if sync.place is set"] = "on"
    topics: Annotated[OnOff, "every 6 hours: find and name topics of projects with many new entries"] = "on"


class SyncSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The place through which your own machines share what they remember."""

    place: Annotated[
        str, "folder PATH, git URL, or ssh HOST, as `memkit sync` sets it; folder+age: encrypted; empty: none"
    ] = ""

    def __post_init__(self) -> None:
        if self.place and not re.fullmatch(r"(folder|git|ssh)(\+age)? [^\s-]\S*( \S+)*", self.place):
            raise SettingError("must be `folder PATH`, `git URL`, or `ssh HOST`", "place")


class KeySettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Your keys at providers. `memkit config` shows none of them."""

    anthropic: Annotated[str, "your key at Anthropic, for summaries"] = ""
    openai: Annotated[str, "your key at OpenAI, for summaries and vectors"] = ""
    google: Annotated[str, "your key at Google, for summaries and vectors"] = ""
    voyage: Annotated[str, "your key at Voyage, for vectors"] = ""
    chroma: Annotated[str, "your key at Chroma Cloud, or your token at the server of index.uri"] = ""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if not is_key(getattr(self, name)):
                raise SettingError(NO_KEY, name)

    def __repr__(self) -> str:
        return "KeySettings(…)"


NO_KEY = "holds more than a key (a space, a newline, …); set it to the key alone"


def is_key(text: str) -> bool:
    """Return whether `text` can be a key: it goes into a header of a request."""
    return text.isascii() and text.isprintable() and " " not in text


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All settings of one project."""

    memory: MemorySettings = MemorySettings()
    capture: CaptureSettings = CaptureSettings()
    archive: ArchiveSettings = ArchiveSettings()
    chunking: ChunkingSettings = ChunkingSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    index: IndexSettings = IndexSettings()
    search: SearchSettings = SearchSettings()
    recall: RecallSettings = RecallSettings()
    service: ServiceSettings = ServiceSettings()
    watch: WatchSettings = WatchSettings()
    summarize: SummarizeSettings = SummarizeSettings()
    jobs: JobSettings = JobSettings()
    sync: SyncSettings = SyncSettings()
    keys: KeySettings = KeySettings()
