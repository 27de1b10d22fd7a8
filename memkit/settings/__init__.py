"""All settings: types, bounds, defaults, and descriptions.

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
from memkit.paths import MEMORY_DIRECTORY
from memkit.privacy.financial import FINANCIAL
from memkit.settings.search import SearchSettings
from memkit.settings.summarize import SummarizeSettings

__all__ = [
    "AUTO",
    "CLOUD",
    "ArchiveSettings",
    "CaptureSettings",
    "ChunkingSettings",
    "EmbeddingSettings",
    "IndexSettings",
    "MemorySettings",
    "RecallSettings",
    "SearchSettings",
    "ServiceSettings",
    "Settings",
    "SummarizeSettings",
]

CLOUD = "cloud"
"""The value of `index.uri` for Chroma Cloud."""

AUTO = "auto"
"""The value of `embedding.query_prefix` and `passage_prefix` for the prefix that the model expects."""

_LOCAL_MODEL = "all-MiniLM-L6-v2"
_DEFAULT_MODELS = {
    "openai": "text-embedding-3-small",
    "google": "gemini-embedding-001",
    "voyage": "voyage-3.5",
    "ollama": "nomic-embed-text",
}


class MemorySettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The Markdown files of the memory."""

    paths: Annotated[
        tuple[str, ...], Meta(description="files and directories to index, relative to the project")
    ] = (Path(MEMORY_DIRECTORY).as_posix(),)
    exclude: Annotated[tuple[str, ...], Meta(description="patterns of files not to index")] = ()
    shared: Annotated[
        bool, Meta(description="let git see the memory; otherwise .memkit/.gitignore hides it")
    ] = False
    keep_days: Annotated[
        int,
        Meta(ge=0, le=36_500, description="delete days after this time, with your notes in them; 0: never"),
    ] = 0


class CaptureSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Redaction and exclusion while sessions are captured."""

    redact: Annotated[
        tuple[str, ...], Meta(description="your own regular expressions; text that matches is redacted")
    ] = ()
    redact_financial: Annotated[
        bool, Meta(description="also redact card numbers and IBANs with valid check digits")
    ] = False
    exclude: Annotated[
        tuple[str, ...],
        Meta(
            description="paths and patterns (absolute, with ~, or relative to the project): sessions there "
            "are not kept, and neither are tool calls on such files"
        ),
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
        financial = [FINANCIAL] if self.redact_financial else []
        return [re.compile(pattern) for pattern in [*self.redact, *financial]]


class ArchiveSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Original exchanges, kept after Claude Code deletes its transcripts."""

    enabled: Annotated[bool, Meta(description="keep the original exchanges, redacted")] = True
    keep_days: Annotated[
        int, Meta(ge=0, le=36_500, description="delete a session this long after its last turn; 0: never")
    ] = 0


class ChunkingSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Splitting Markdown into chunks."""

    max_characters: Annotated[int, Meta(ge=200, le=100_000, description="longest chunk")] = 1500
    min_characters: Annotated[
        int, Meta(ge=0, le=10_000, description="shorter chunks are joined with a neighbor")
    ] = 100
    overlap_lines: Annotated[int, Meta(ge=0, le=20, description="lines repeated after a split")] = 2

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
        Literal["local", "sentence-transformers", "openai", "google", "voyage", "ollama", "none"],
        Meta(
            description="local (MiniLM on ONNX), sentence-transformers, openai, google, voyage, "
            "ollama, or none"
        ),
    ] = "local"
    model: Annotated[str, Meta(description="the model's name; empty: the provider's default")] = ""
    query_prefix: Annotated[
        str, Meta(max_length=200, description="text before a query; auto: what the model expects")
    ] = AUTO
    passage_prefix: Annotated[
        str, Meta(max_length=200, description="text before a chunk; auto: what the model expects")
    ] = AUTO
    download: Annotated[
        bool, Meta(description="download the local model (91 MB, once) if it is missing")
    ] = True

    def __post_init__(self) -> None:
        # The local model's name is the default. With another provider it means that none was chosen.
        if self.model in ("", _LOCAL_MODEL):
            force_setattr(self, "model", _DEFAULT_MODELS.get(self.provider, _LOCAL_MODEL))


class IndexSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Storage of the vectors."""

    uri: Annotated[
        str,
        Meta(description="empty: MEMKIT_HOME/index; an absolute path; http(s)://host:port; or cloud"),
    ] = ""

    def __post_init__(self) -> None:
        if not _is_index_uri(self.uri):
            raise SettingError("must be an absolute path, http(s)://host:port, or cloud", "uri")


def _is_index_uri(uri: str) -> bool:
    try:
        parts = urlsplit(uri)
        if parts.scheme in ("http", "https"):
            is_plain = "@" not in parts.netloc and parts[2:] in (("", "", ""), ("/", "", ""))
            return bool(parts.hostname) and parts.port != 0 and is_plain
        # A relative path would mean a different index in each directory.
        return uri in ("", CLOUD) or Path(uri).expanduser().is_absolute()
    except (ValueError, RuntimeError):  # a bad address or port, an unknown user
        return False


class RecallSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Text that Claude gets from the memory."""

    budget_tokens: Annotated[
        int, Meta(ge=100, le=100_000, description="most tokens of the skill's first search")
    ] = 2000
    session_characters: Annotated[
        int, Meta(ge=0, le=10_000, description="most characters at the start of a session; 0: nothing")
    ] = 2000
    other_projects: Annotated[
        bool,
        Meta(
            description="let commands that Claude runs read other projects too (--project, --all-projects, "
            "their ids and transcripts); your own terminal always can"
        ),
    ] = False
    inject: Annotated[
        Literal["pointers", "hint", "off"],
        Meta(
            description="what to add to a prompt: pointers to matching memories, a hint that there is a "
            "memory, or nothing (off)"
        ),
    ] = "pointers"


class ServiceSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The background process that keeps index and model loaded."""

    enabled: Annotated[
        bool, Meta(description="run the background service; without it, each command works alone")
    ] = True
    idle_minutes: Annotated[
        float, Meta(ge=0, le=1440, description="stop this long after the last session or request")
    ] = 10


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
