"""The settings there are: their types, bounds, defaults, and what each is for.

A class made directly is not converted and not held to its bounds, only to what its `__post_init__`
checks; `memkit.config.validate` does all of it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from msgspec import Meta, Struct, field
from msgspec.structs import force_setattr

from memkit.paths import MEMORY_DIRECTORY

CLOUD = "cloud"
"""The value of `index.uri` for Chroma Cloud."""

AUTO = "auto"
"""The value of `embedding.query_prefix` and `passage_prefix` for what the model is known to want."""

_LOCAL_MODEL = "all-MiniLM-L6-v2"
_USUAL_MODELS = {
    "openai": "text-embedding-3-small",
    "google": "gemini-embedding-001",
    "voyage": "voyage-3.5",
    "ollama": "nomic-embed-text",
}


class SettingError(ValueError):
    """A value that no setting can have; `name` is the field's, "" if several do not go together."""

    def __init__(self, reason: str, name: str = "") -> None:
        super().__init__(reason)
        self.name = name


_Share = Annotated[float, Meta(ge=0, le=1)]


class MemorySettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which markdown is the memory."""

    paths: Annotated[
        list[str],
        Meta(description="files and directories that are indexed, relative to the project"),
    ] = field(default_factory=lambda: [Path(MEMORY_DIRECTORY).as_posix()])
    exclude: Annotated[list[str], Meta(description="patterns of files that are not indexed")] = []
    shared: Annotated[
        bool, Meta(description="let git see the memory; .memkit/.gitignore hides it otherwise")
    ] = False
    keep_days: Annotated[
        int,
        Meta(
            ge=0,
            le=36_500,
            description="how long a day stays in the memory, your notes in it too; 0: for ever",
        ),
    ] = 0


class CaptureSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is kept of a session."""

    redact: Annotated[
        list[str],
        Meta(description="regular expressions of your own; what they match is not written"),
    ] = []
    exclude: Annotated[
        list[str],
        Meta(
            description="paths and globs, absolute, with ~, or relative to the project: no session held "
            "there is kept, nor the input or result of a tool call on such a file"
        ),
    ] = []

    def __post_init__(self) -> None:
        for pattern in self.redact:
            try:
                re.compile(pattern)
            except re.error as error:
                reason = f"{pattern!r} is no regular expression: {error}"
                raise SettingError(reason, "redact") from error

    def compiled_patterns(self) -> list[re.Pattern[str]]:
        """The user's own patterns, compiled."""
        return [re.compile(pattern) for pattern in self.redact]


class ArchiveSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The original exchanges, kept beyond the client's own transcripts."""

    enabled: Annotated[
        bool,
        Meta(description="keep the original exchange, redacted, after the client deleted its own"),
    ] = True
    keep_days: Annotated[
        int,
        Meta(ge=0, le=36_500, description="how long after a session's last turn; 0: for ever"),
    ] = 0


class ChunkingSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How markdown is cut into chunks."""

    max_characters: Annotated[int, Meta(ge=200, le=100_000, description="longest chunk")] = 1500
    min_characters: Annotated[
        int, Meta(ge=0, le=10_000, description="shorter ones join another")
    ] = 100
    overlap_lines: Annotated[int, Meta(ge=0, le=20, description="lines repeated after a cut")] = 2

    def __post_init__(self) -> None:
        # What the chunker asks of its options, see memkit.index.packing.ChunkOptions.
        if 4 * self.min_characters > self.max_characters:
            raise SettingError(
                f"min_characters = {self.min_characters} is more than a quarter of "
                f"max_characters = {self.max_characters}"
            )


class EmbeddingSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What turns text into vectors."""

    provider: Annotated[
        Literal["local", "sentence-transformers", "openai", "google", "voyage", "ollama", "none"],
        Meta(
            description="local (MiniLM on ONNX), sentence-transformers, openai, google, voyage, "
            "ollama, or none"
        ),
    ] = "local"
    model: Annotated[str, Meta(description="the model's name; empty: the provider's usual")] = ""
    query_prefix: Annotated[
        str,
        Meta(max_length=200, description="put before a query; auto: what the model wants"),
    ] = AUTO
    passage_prefix: Annotated[
        str,
        Meta(max_length=200, description="put before a chunk; auto: what the model wants"),
    ] = AUTO
    download: Annotated[
        bool, Meta(description="fetch the weights (83 MB, once) when they are missing")
    ] = True

    def __post_init__(self) -> None:
        # The local model's name is what this setting holds for those who never chose one.
        if self.model in ("", _LOCAL_MODEL):
            force_setattr(self, "model", _USUAL_MODELS.get(self.provider, _LOCAL_MODEL))


class IndexSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the vectors are kept."""

    uri: Annotated[
        str,
        Meta(
            description="empty: MEMKIT_HOME/index; an absolute path; http(s)://host:port; or cloud"
        ),
    ] = ""

    def __post_init__(self) -> None:
        if not _is_place(self.uri):
            raise SettingError(
                "is neither an absolute path, nor http(s)://host:port, nor cloud", "uri"
            )


def _is_place(uri: str) -> bool:
    try:
        parts = urlsplit(uri)
        if parts.scheme in ("http", "https"):
            is_plain = "@" not in parts.netloc and parts[2:] in (("", "", ""), ("/", "", ""))
            return bool(parts.hostname) and parts.port != 0 and is_plain
        # A relative path would be another index in every directory.
        return uri in ("", CLOUD) or Path(uri).expanduser().is_absolute()
    except (ValueError, RuntimeError):  # no address, no port, no such user
        return False


class SearchSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How results are ranked; the formulas stand in `memkit.recall.fusion`."""

    mode: Annotated[
        Literal["context", "rrf", "weighted", "lexical", "dense"],
        Meta(description="context, rrf, weighted, lexical or dense"),
    ] = "context"
    k: Annotated[int, Meta(ge=1, le=1000, description="how many results")] = 5
    user_memory: Annotated[
        bool,
        Meta(description="look into MEMKIT_HOME/memory too, what is true across projects"),
    ] = True
    language: Annotated[str, Meta(description="language of the Snowball stemmer")] = "english"
    best_relevance: Annotated[
        _Share, Meta(description="nothing is found unless the best match reaches this")
    ] = 0.32
    dense_weight: Annotated[_Share, Meta(description="share of the cosine beside BM25")] = 0.5
    long_weight: Annotated[_Share, Meta(description="so much more of it for long entries")] = 0.2
    entry_weight: Annotated[
        _Share, Meta(description="share of the whole entry in the cosine of a piece")
    ] = 0.4
    passage_weight: Annotated[
        float, Meta(ge=0, le=2, description="of BM25 over the passage around a chunk")
    ] = 0.75
    near_weight: Annotated[_Share, Meta(description="of the chunks one step away")] = 0.2
    far_weight: Annotated[_Share, Meta(description="of the chunks two steps away")] = 0.05
    session_weight: Annotated[
        float, Meta(ge=0, le=2, description="of the session's best chunks")
    ] = 0.25
    repeat_cost: Annotated[
        _Share, Meta(description="what each further piece of the same entry loses")
    ] = 0.1
    own_length: Annotated[
        int,
        Meta(ge=1, le=100_000, description="characters from which an entry needs no context"),
    ] = 700
    rrf_k: Annotated[int, Meta(ge=1, le=10_000, description="the constant of mode rrf")] = 60
    semantic_weight: Annotated[_Share, Meta(description="of the cosine, in mode weighted")] = 0.5
    keyword_weight: Annotated[_Share, Meta(description="of BM25, in mode weighted")] = 0.3
    recency_weight: Annotated[_Share, Meta(description="of age, in mode weighted")] = 0.2
    half_life_days: Annotated[
        float,
        Meta(ge=0.1, le=36_500, description="age at which an entry's recency is one half"),
    ] = 30
    recency_boost: Annotated[
        float,
        Meta(ge=0, le=10, description="what a new entry gains, in share; 0 for nothing"),
    ] = 0
    domain_boost: Annotated[
        float, Meta(ge=1, le=10, description="factor for the domain of the edited file")
    ] = 1.3
    instruction_boost: Annotated[
        float, Meta(ge=1, le=10, description="factor for *.instructions.md")
    ] = 1.2
    unverified_factor: Annotated[
        _Share, Meta(description="factor for a bullet that says something its turns do not")
    ] = 0.7
    domains: Annotated[
        list[str],
        Meta(
            description="which directory of the memory belongs to one of code: "
            '"src/billing=docs/billing"; by default directories of one name'
        ),
    ] = []

    def __post_init__(self) -> None:
        for domain in self.domains:
            code, _, memory = domain.partition("=")
            if not code.strip("/ ") or not memory.strip("/ "):
                reason = f"{domain!r} is not of the form code/directory=memory/directory"
                raise SettingError(reason, "domains")
        if self.language != "english":
            _require_stemmer(self.language)


def _require_stemmer(language: str) -> None:
    import snowballstemmer  # only where the default is not good enough

    known = sorted(snowballstemmer.algorithms())
    if language not in known:
        raise SettingError(f"no stemmer knows it; there are {', '.join(known)}", "language")


class RecallSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is told to the model."""

    budget_tokens: Annotated[
        int, Meta(ge=100, le=100_000, description="room for the first search of the skill")
    ] = 2000
    session_characters: Annotated[
        int,
        Meta(ge=0, le=10_000, description="room at the start of a session; 0 says nothing"),
    ] = 2000
    inject: Annotated[
        Literal["pointers", "hint", "off"],
        Meta(
            description="beside a prompt: pointers to what was said on it, a hint that there is a "
            "memory, or off (nothing)"
        ),
    ] = "pointers"


class ServiceSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The process that keeps index and model warm."""

    enabled: Annotated[
        bool,
        Meta(description="have a process keep index and model warm; else each command works alone"),
    ] = True
    idle_minutes: Annotated[
        float,
        Meta(ge=0, le=1440, description="after so long without a live session or request it ends"),
    ] = 10


class SummarizeSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bullets above the digests, written by a model; nothing is spent unless a provider is chosen."""

    provider: Annotated[
        Literal["none", "auto", "anthropic", "claude-cli", "openai", "google", "ollama"],
        Meta(
            description="none, auto (anthropic with a key, else claude-cli), anthropic, claude-cli, "
            "openai, google, or ollama"
        ),
    ] = "none"
    model: Annotated[
        str, Meta(description="the model's name; empty: the provider's usual small one")
    ] = ""
    base_url: Annotated[
        str,
        Meta(description="another address of the provider, as for LM Studio; empty: its own"),
    ] = ""
    prompt_file: Annotated[
        str, Meta(description="a file with instructions of your own in place of memkit's")
    ] = ""
    mode: Annotated[
        Literal["segment", "turn", "off"],
        Meta(description="segment (a stretch of work), turn (each one by itself), or off"),
    ] = "segment"
    silence_minutes: Annotated[
        float, Meta(ge=1, le=1440, description="a pause that ends a segment")
    ] = 30
    segment_tokens: Annotated[
        int, Meta(ge=500, le=100_000, description="a segment ends before it is longer")
    ] = 4000
    overlap_minutes: Annotated[
        float, Meta(ge=0, le=1440, description="of what went before a segment, shown as context")
    ] = 5
    overlap_tokens: Annotated[
        int, Meta(ge=0, le=10_000, description="most of what is shown of that")
    ] = 500
    wait_minutes: Annotated[
        float,
        Meta(ge=0, le=1440, description="how long a segment waits for others, to share one call"),
    ] = 60
    daily_tokens: Annotated[
        int, Meta(ge=0, description="most tokens a day, read and written; then segments wait")
    ] = 200_000
    daily_usd: Annotated[
        float, Meta(ge=0, description="most dollars a day, as far as prices are known; 0: no limit")
    ] = 0
    timeout_seconds: Annotated[
        float, Meta(ge=1, le=3600, description="how long one call may take")
    ] = 120
    compact_days: Annotated[
        int, Meta(ge=0, le=3660, description="condense the memory every so many days; 0: never")
    ] = 0

    @property
    def is_on(self) -> bool:
        """Whether anything is to be summarized."""
        return self.provider != "none" and self.mode != "off"


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
    summarize: SummarizeSettings = SummarizeSettings()
