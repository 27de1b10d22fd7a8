"""The settings there are: their types, bounds, defaults, and what each is for.

A class made directly is not converted and not held to its bounds, only to what its `__post_init__`
checks; `memkit.settings.load.validate` does all of it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from msgspec import Meta, Struct, field
from msgspec.structs import force_setattr

from memkit.paths import MEMORY_DIRECTORY
from memkit.privacy.financial import FINANCIAL
from memkit.settings.error import SettingError
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
    "SettingError",
    "Settings",
    "SummarizeSettings",
]

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
    redact_financial: Annotated[
        bool, Meta(description="redact card numbers and IBANs with right check digits as well")
    ] = False
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
        """The user's own patterns, and the one for financial numbers if it is asked for, compiled."""
        financial = [FINANCIAL] if self.redact_financial else []
        return [re.compile(pattern) for pattern in [*self.redact, *financial]]


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
        # What the chunker asks of its options, see memkit.index.chunker.ChunkOptions.
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


class RecallSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is told to the model."""

    budget_tokens: Annotated[
        int, Meta(ge=100, le=100_000, description="room for the first search of the skill")
    ] = 2000
    session_characters: Annotated[
        int,
        Meta(ge=0, le=10_000, description="room at the start of a session; 0 says nothing"),
    ] = 2000
    other_projects: Annotated[
        bool,
        Meta(
            description="let commands that Claude runs read other projects too: `--project`, "
            "`--all-projects`, ids and transcripts of theirs; in your own terminal they always may"
        ),
    ] = False
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
