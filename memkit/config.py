"""Settings: what there is, where it comes from, and what is wrong with it.

Five layers, later ones winning: defaults, `MEMKIT_HOME/config.toml`, `<project>/.memkit.toml`,
environment variables `MEMKIT_SECTION_FIELD`, and flags of a command. A project's file comes with the
repository, maybe from strangers, so it may set harmless keys only; anything else in it is refused.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from memkit.errors import ConfigError
from memkit.paths import MEMORY_DIRECTORY, Home, make_private_directory, write_durably
from memkit.project import Project

PROJECT_FILE = ".memkit.toml"

Key = tuple[str, str]


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


class EmbeddingSettings(_Section):
    """What turns text into vectors."""

    provider: Literal["local", "sentence-transformers", "none"] = Field(
        default="local", description="local (MiniLM on ONNX), sentence-transformers, or none"
    )
    model: str = Field(default="all-MiniLM-L6-v2", description="the model's name")
    download: bool = Field(default=True, description="fetch the weights when they are missing")


class IndexSettings(_Section):
    """Where the vectors are kept."""

    uri: str = Field(
        default="", description="empty: MEMKIT_HOME/index; a path; http(s)://host:port; or cloud"
    )


class SearchSettings(_Section):
    """How results are ranked; the formulas stand in `memkit.recall.fusion`."""

    mode: Literal["context", "lexical", "dense"] = Field(
        default="context", description="context, lexical or dense"
    )
    k: int = Field(default=5, ge=1, le=1000, description="how many results")
    language: str = Field(default="english", description="language of the Snowball stemmer")
    dense_weight: float = Field(default=0.5, ge=0, le=1, description="share of the cosine")
    near_weight: float = Field(default=0.3, ge=0, le=1, description="of the chunks one step away")
    far_weight: float = Field(default=0.1, ge=0, le=1, description="of the chunks two steps away")
    session_weight: float = Field(
        default=0.4, ge=0, le=2, description="of the session's best chunks"
    )
    own_length: int = Field(
        default=600, ge=1, le=100_000, description="characters from which a chunk needs no context"
    )


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


_HARMLESS = frozenset({("memory", "exclude")})
_HARMLESS_SECTIONS = frozenset({"chunking", "search"})

_OTHER_VARIABLES = frozenset({"MEMKIT_HOME", "MEMKIT_PYTHON", "MEMKIT_CHILD", "MEMKIT_DISABLE"})
"""Variables of memkit's that are no settings; those beginning with `MEMKIT_TEST_` are the tests'."""


class Value(NamedTuple):
    """A setting as found: the raw value and where it stands (`file:line`, a variable, `a flag`)."""

    value: Any
    origin: str


@dataclass(frozen=True)
class Loaded:
    """Settings with the origin of each that is not a default, and what was refused of a project's file."""

    settings: Settings
    origins: dict[Key, str]
    refused: list[str]


def keys() -> Iterator[Key]:
    """Every setting, as (section, field)."""
    for section, field in Settings.model_fields.items():
        for name in _model(field.annotation).model_fields:
            yield section, name


def _model(annotation: Any) -> type[BaseModel]:
    assert isinstance(annotation, type) and issubclass(annotation, BaseModel)
    return annotation


def describe(key: Key) -> str:
    """The one-line description of a setting."""
    field = _model(Settings.model_fields[key[0]].annotation).model_fields[key[1]]
    return field.description or ""


def load(
    home: Home,
    project: Project | None = None,
    flags: Mapping[Key, Any] | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Loaded:
    """The settings in force. Raises `ConfigError` naming file and line, or the variable."""
    found: dict[Key, Value] = dict(_file_values(Path(home.config_file)))
    _check_known(found)
    refused: list[str] = []
    if project is not None:
        found |= _harmless(_project_values(Path(project.root), refused), refused)
    from_environment = dict(_environment_values(environ))
    _check_known(from_environment)
    found |= from_environment
    found |= {key: Value(value, "a flag") for key, value in (flags or {}).items()}
    settings = validate(found)
    return Loaded(settings, {key: value.origin for key, value in found.items()}, refused)


def validate(found: Mapping[Key, Value]) -> Settings:
    """Settings made of `found` over the defaults. Raises `ConfigError` for the first bad value."""
    tree: dict[str, dict[str, Any]] = {}
    for (section, name), value in found.items():
        tree.setdefault(section, {})[name] = value.value
    try:
        return Settings.model_validate(tree)
    except ValidationError as error:
        first = error.errors()[0]
        key = (str(first["loc"][0]), str(first["loc"][1]))
        reason = first["msg"].removeprefix("Value error, ").lower()
        raise ConfigError(
            f"{found[key].origin}: {'.'.join(key)} = {first['input']!r}: {reason}"
        ) from error


def _check_known(found: Mapping[Key, Value]) -> None:
    known = set(keys())
    for key, value in found.items():
        if key not in known:
            raise ConfigError(
                f"{value.origin}: unknown setting {'.'.join(filter(None, key))}; "
                "`memkit config list` shows those there are"
            )


def _project_values(root: Path, refused: list[str]) -> dict[Key, Value]:
    try:
        return dict(_file_values(root / PROJECT_FILE))
    except ConfigError as error:
        refused.append(str(error))
        return {}


def _harmless(found: dict[Key, Value], refused: list[str]) -> dict[Key, Value]:
    """What a repository may set; the rest is named in `refused`."""
    known = set(keys())
    kept = {}
    for key, value in found.items():
        name = ".".join(filter(None, key))
        if key in known and (key in _HARMLESS or key[0] in _HARMLESS_SECTIONS):
            try:
                validate({key: value})
            except ConfigError as error:
                refused.append(str(error))
            else:
                kept[key] = value
        elif key in known:
            refused.append(
                f"{value.origin}: {name} is refused: a project's file may set only chunking, search "
                "and memory.exclude; set it in your own config.toml"
            )
        else:
            refused.append(f"{value.origin}: unknown setting {name}")
    return kept


def _file_values(path: Path) -> Iterator[tuple[Key, Value]]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    for section, values in _parse_toml(text, path).items():
        if not isinstance(values, dict):
            yield (section, ""), Value(values, f"{path}:{_line(text, '', section)}")
            continue
        for name, value in values.items():
            yield (section, name), Value(value, f"{path}:{_line(text, section, name)}")


def _parse_toml(text: str, path: Path) -> dict[str, Any]:
    try:
        import tomllib
    except ImportError:  # Python 3.10
        import tomli as tomllib
    try:
        parsed: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        match = re.search(r"at line (\d+)", str(error))
        raise ConfigError(f"{path}:{match[1] if match else 1}: not valid TOML: {error}") from error
    return parsed


def _line(text: str, section: str, name: str) -> int:
    """The line on which a setting stands; 1 if it is written in some unusual way."""
    current = ""
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.split("#")[0].strip().replace('"', "").replace("'", "")
        header = re.match(r"\[\s*([\w-]+)\s*\]$", stripped)
        if header:
            current = header[1]
        full = f"{current}.{stripped}" if current else stripped
        if re.match(rf"{re.escape(f'{section}.{name}' if section else name)}\s*=", full):
            return number
    return 1


def _environment_values(environ: Mapping[str, str]) -> Iterator[tuple[Key, Value]]:
    for variable, text in sorted(environ.items()):
        if not variable.startswith("MEMKIT_") or variable in _OTHER_VARIABLES:
            continue
        if variable.startswith("MEMKIT_TEST_"):
            continue
        section, _, name = variable.removeprefix("MEMKIT_").lower().partition("_")
        yield (section, name), Value(parse_text((section, name), text), variable)


def parse_text(key: Key, text: str) -> Any:
    """A value written as text: lists as JSON or separated by commas; the rest is left to validation."""
    section = Settings.model_fields.get(key[0])
    field = _model(section.annotation).model_fields.get(key[1]) if section else None
    if field is None or get_origin(field.annotation) is not list:
        return text
    if text.lstrip().startswith("["):
        try:
            return json.loads(text)
        except ValueError:
            return text
    return [part.strip() for part in text.split(",") if part.strip()]


def save(home: Home, key: Key, text: str) -> None:
    """Set one key in `MEMKIT_HOME/config.toml`, keeping its comments. Raises `ConfigError`, `OSError`."""
    import tomlkit  # only for writing

    path = Path(home.config_file)
    value = Value(parse_text(key, text), ".".join(key))
    _check_known({key: value})
    settings = validate({key: value})
    document = (
        tomlkit.parse(path.read_text(encoding="utf-8")) if path.exists() else tomlkit.document()
    )
    table = document.setdefault(key[0], tomlkit.table())
    table[key[1]] = getattr(getattr(settings, key[0]), key[1])
    make_private_directory(home.root)
    write_durably(home.config_file, tomlkit.dumps(document).encode("utf-8"))
    publish_hook_settings(home, load(home).settings)


def publish_hook_settings(home: Home, settings: Settings) -> None:
    """Write the few settings the hooks need as JSON: their Python may be too old to read TOML."""
    wanted = settings.recall.model_dump(include={"session_characters", "prompt_hint"})
    path = Path(home.hook_settings)
    try:
        if json.loads(path.read_bytes()) == wanted:
            return
    except (OSError, ValueError):  # missing or damaged: written below
        pass
    make_private_directory(home.run)
    write_durably(str(path), json.dumps(wanted).encode("ascii"))
