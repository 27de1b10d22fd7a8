"""The settings there are: their types, bounds, defaults, and what each is for."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

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


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class MemorySettings(_Section):
    """Which markdown is the memory."""

    paths: list[str] = Field(
        default=[Path(MEMORY_DIRECTORY).as_posix()],
        description="files and directories that are indexed, relative to the project",
    )
    exclude: list[str] = Field(default=[], description="patterns of files that are not indexed")
    shared: bool = Field(default=False, description="let git see the memory of a project")


class CaptureSettings(_Section):
    """What is kept of a session."""

    redact: list[str] = Field(
        default=[], description="regular expressions of your own; what they match is not written"
    )

    @field_validator("redact")
    @classmethod
    def _must_compile(cls, patterns: list[str]) -> list[str]:
        for pattern in patterns:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"{pattern!r} is no regular expression: {error}") from error
        return patterns

    def compiled_patterns(self) -> list[re.Pattern[str]]:
        """The user's own patterns, compiled."""
        return [re.compile(pattern) for pattern in self.redact]


class ChunkingSettings(_Section):
    """How markdown is cut into chunks."""

    max_characters: int = Field(default=1500, ge=200, le=100_000, description="longest chunk")
    min_characters: int = Field(
        default=100, ge=0, le=10_000, description="shorter ones join another"
    )
    overlap_lines: int = Field(default=2, ge=0, le=20, description="lines repeated after a cut")

    @model_validator(mode="after")
    def _must_leave_room(self) -> ChunkingSettings:
        # What the chunker asks of its options, see memkit.index.packing.ChunkOptions.
        if 4 * self.min_characters > self.max_characters:
            raise ValueError(
                f"min_characters = {self.min_characters} is more than a quarter of "
                f"max_characters = {self.max_characters}"
            )
        return self


class EmbeddingSettings(_Section):
    """What turns text into vectors."""

    provider: Literal[
        "local", "sentence-transformers", "openai", "google", "voyage", "ollama", "none"
    ] = Field(
        default="local",
        description="local (MiniLM on ONNX), sentence-transformers, openai, google, voyage, ollama, "
        "or none",
    )
    model: str = Field(
        default="", validate_default=True, description="the model's name; empty: the provider's usual"
    )
    query_prefix: str = Field(
        default=AUTO, max_length=200, description="put before a query; auto: what the model wants"
    )
    passage_prefix: str = Field(
        default=AUTO, max_length=200, description="put before a chunk; auto: what the model wants"
    )
    download: bool = Field(default=True, description="fetch the weights when they are missing")

    @field_validator("model")
    @classmethod
    def _may_be_left_to_the_provider(cls, model: str, others: ValidationInfo) -> str:
        usual = _USUAL_MODELS.get(others.data.get("provider", ""), _LOCAL_MODEL)
        # The local model's name is what this setting holds for those who never chose one.
        return usual if model in ("", _LOCAL_MODEL) else model


class IndexSettings(_Section):
    """Where the vectors are kept."""

    uri: str = Field(
        default="",
        description="empty: MEMKIT_HOME/index; an absolute path; http(s)://host:port; or cloud",
    )

    @field_validator("uri")
    @classmethod
    def _must_name_a_place(cls, uri: str) -> str:
        parts = urlsplit(uri)
        if parts.scheme in ("http", "https"):
            is_good = bool(parts.hostname) and parts.port != 0 and "@" not in parts.netloc
            is_good = is_good and parts[2:] in (("", "", ""), ("/", "", ""))
        else:
            # A relative path would be another index in every directory.
            is_good = uri in ("", CLOUD) or Path(uri).expanduser().is_absolute()
        if not is_good:
            raise ValueError("is neither an absolute path, nor http(s)://host:port, nor cloud")
        return uri


class SearchSettings(_Section):
    """How results are ranked; the formulas stand in `memkit.recall.fusion`."""

    mode: Literal["context", "rrf", "weighted", "lexical", "dense"] = Field(
        default="context", description="context, rrf, weighted, lexical or dense"
    )
    k: int = Field(default=5, ge=1, le=1000, description="how many results")
    language: str = Field(default="english", description="language of the Snowball stemmer")
    best_relevance: float = Field(
        default=0.32, ge=0, le=1, description="nothing is found unless the best match reaches this"
    )
    dense_weight: float = Field(default=0.5, ge=0, le=1, description="share of the cosine")
    long_weight: float = Field(default=0.2, ge=0, le=1, description="more of it for long entries")
    entry_weight: float = Field(
        default=0.4, ge=0, le=1, description="share of the whole entry in the cosine of a piece"
    )
    passage_weight: float = Field(default=0.75, ge=0, le=2, description="of the passage around")
    near_weight: float = Field(default=0.2, ge=0, le=1, description="of the chunks one step away")
    far_weight: float = Field(default=0.05, ge=0, le=1, description="of the chunks two steps away")
    session_weight: float = Field(
        default=0.25, ge=0, le=2, description="of the session's best chunks"
    )
    own_length: int = Field(
        default=700, ge=1, le=100_000, description="characters from which an entry needs no context"
    )
    rrf_k: int = Field(default=60, ge=1, le=10_000, description="the constant of mode rrf")
    semantic_weight: float = Field(
        default=0.5, ge=0, le=1, description="of the cosine, in mode weighted"
    )
    keyword_weight: float = Field(default=0.3, ge=0, le=1, description="of BM25, in mode weighted")
    recency_weight: float = Field(default=0.2, ge=0, le=1, description="of age, in mode weighted")
    half_life_days: float = Field(
        default=30, ge=0.1, le=36_500, description="age at which an entry's recency is one half"
    )
    recency_boost: float = Field(
        default=0, ge=0, le=10, description="what a new entry gains, in share; 0 for nothing"
    )
    domain_boost: float = Field(
        default=1.3, ge=1, le=10, description="factor for the domain of the edited file"
    )
    instruction_boost: float = Field(
        default=1.2, ge=1, le=10, description="factor for *.instructions.md"
    )
    domains: list[str] = Field(
        default=[],
        description='which directory of the memory belongs to one of code: "src/billing=docs/billing"',
    )

    @field_validator("domains")
    @classmethod
    def _must_name_two_directories(cls, domains: list[str]) -> list[str]:
        for domain in domains:
            code, _, memory = domain.partition("=")
            if not code.strip("/ ") or not memory.strip("/ "):
                raise ValueError(f"{domain!r} is not of the form code/directory=memory/directory")
        return domains

    @field_validator("language")
    @classmethod
    def _must_have_a_stemmer(cls, language: str) -> str:
        import snowballstemmer  # only where the default is not good enough

        known = sorted(snowballstemmer.algorithms())
        if language not in known:
            raise ValueError(f"no stemmer knows it; there are {', '.join(known)}")
        return language


class RecallSettings(_Section):
    """What is told to the model."""

    budget_tokens: int = Field(
        default=2000, ge=100, le=100_000, description="room for the first search of the skill"
    )
    session_characters: int = Field(
        default=2000, ge=0, le=10_000, description="room at the start of a session; 0 says nothing"
    )
    prompt_hint: bool = Field(default=True, description="mention the memory beside a prompt")


class Settings(BaseModel):
    """All settings of one project."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    memory: MemorySettings = MemorySettings()
    capture: CaptureSettings = CaptureSettings()
    chunking: ChunkingSettings = ChunkingSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    index: IndexSettings = IndexSettings()
    search: SearchSettings = SearchSettings()
    recall: RecallSettings = RecallSettings()
