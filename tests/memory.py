"""A memory to try things on: markdown in a project, a home, and embedders that count."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from memkit.embedding import Embedder, load_embedder
from memkit.index import SyncReport, index_lock, open_snapshot, sync_project
from memkit.index.chunk import Chunk
from memkit.index.manifest import SUFFIX
from memkit.index.reader import ChunkSegment
from memkit.index.snapshot import Snapshot
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.search.ranking import Searcher
from memkit.search.results import Answer, SearchRequest
from memkit.settings import EmbeddingSettings
from memkit.settings.load import Settings


class FakeEmbedder:
    """Bags of hashed words: cheap, deterministic, and near for texts that share words."""

    name = "fake"

    def __init__(self, dimensions: int = 8, window: int = 400) -> None:
        self.dimensions = dimensions
        self.window = window
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.texts += texts
        vectors = np.full((len(texts), self.dimensions), 0.01, dtype=np.float32)
        for row, text in enumerate(texts):
            for word in text.lower().split():
                digest = hashlib.sha256(word.encode("utf-8", "replace")).digest()
                vectors[row, digest[0] % self.dimensions] += digest[1] / 255 - 0.3
        normalised: NDArray[np.float32] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return normalised

    def embed_query(self, text: str) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = self.embed([text])[0]
        return vector

    def windows(self, text: str) -> list[str]:
        cuts = range(0, max(1, len(text)), self.window)
        return [text[cut : cut + self.window] for cut in cuts]


class CountingEmbedder:
    """A real embedder, with the texts it was asked to embed."""

    def __init__(self, real: Embedder) -> None:
        self.real = real
        self.name, self.dimensions = real.name, real.dimensions
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.texts += texts
        return self.real.embed(texts)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        return self.real.embed_query(text)

    def windows(self, text: str) -> list[str]:
        return self.real.windows(text)


@dataclass
class Memory:
    """A project with memory files, in a home of its own."""

    home: Home
    project: Project
    embedder: FakeEmbedder | CountingEmbedder
    settings: Settings = field(default_factory=Settings)
    said: list[str] = field(default_factory=list)

    def path(self, name: str) -> Path:
        return Path(self.project.memory, name)

    def write(self, name: str, text: str | bytes) -> None:
        self.path(name).parent.mkdir(parents=True, exist_ok=True)
        self.path(name).write_bytes(text.encode() if isinstance(text, str) else text)

    def sync(self, **options: Any) -> SyncReport:
        """Index, with the lock, as every caller does."""
        options = {"embedder": self.embedder, "announce": self.said.append, **options}
        with index_lock(self.home, 5.0):
            return sync_project(self.project, self.home, self.settings, **options)

    @property
    def snapshot(self) -> Snapshot:
        found = open_snapshot(self.project, self.home, self.settings)
        assert found is not None
        return found

    @property
    def snapshot_or_none(self) -> Snapshot | None:
        return open_snapshot(self.project, self.home, self.settings)

    def searcher(self, **options: Any) -> Searcher:
        """Over what is indexed, without indexing anything; `options` are settings of the search."""
        chosen = msgspec.structs.replace(self.settings.search, **options)
        return Searcher([self.snapshot], chosen, self.embedder)

    def search(self, query: str, k: int = 50) -> Answer:
        """Search what is indexed, whatever its relevance."""
        return self.searcher().answer(SearchRequest(query, k, minimum=0.0))

    def contents(self) -> dict[str, tuple[object, bytes | None]]:
        """Everything in the index: by id the chunk and its vectors, to the bit."""
        return {
            row.id: (row.chunk, None if row.vectors is None else row.vectors.tobytes())
            for row in self.snapshot.rows()
        }

    def answers(self, queries: Sequence[str]) -> list[list[tuple[object, ...]]]:
        """Ids, order and scores that searches find."""
        return [
            [(r.id, r.score, r.lexical, r.dense, r.context) for r in self.search(query).results]
            for query in queries
        ]


def flip_byte(directory: Path, part: str) -> None:
    """Change one byte of an index in `directory`: of the manifest (`manifest`), or of a section of a segment."""
    if part == "manifest":
        path = next(directory.rglob(part))
        place = path.stat().st_size // 2
    else:
        path = next(directory.rglob(f"*{SUFFIX}"))
        section = ChunkSegment(path).sections[part]
        place = section.start + section.bytes // 2
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


def make_memory(
    root: Path, files: Mapping[str, str] | None = None, *,
    embedder: FakeEmbedder | CountingEmbedder | None = None, home: Home | None = None,
    models: str | None = None, **settings: Mapping[str, Any],
) -> Memory:  # fmt: skip
    """A memory below `root`; `settings` are sections, `models` a directory with the weights."""
    project = root / "project"
    project.mkdir(parents=True, exist_ok=True)
    home = home or Home(str(root / "home"))
    if models is not None:
        Path(home.root).mkdir(parents=True, exist_ok=True)
        Path(home.models).symlink_to(models)
    memory = Memory(
        home, Project(str(project)), embedder or FakeEmbedder(), msgspec.convert(settings, Settings)
    )
    for name, text in (files or {}).items():
        memory.write(name, text)
    return memory


_NOTHING: dict[str, Any] = {"str": "", "int": 1, "bool": False, "tuple[str, ...]": ()}


def make_chunk(content: str = "text", **known: Any) -> Chunk:
    """A chunk of which nothing else is `known`."""
    others = {each.name: _NOTHING[str(each.type)] for each in dataclasses.fields(Chunk)}
    return Chunk(**{**others, "content": content, **known})


def day(date: str, *turns: tuple[str, str], session: str = "5e550001") -> str:
    """A day of the journal; a turn is a question and an answer."""
    text = f"# {date}\n\n## 09:00 Work <!-- session:{session} branch:main -->\n"
    for number, (question, answer) in enumerate(turns):
        turn = hashlib.sha256(f"{date}{number}".encode()).hexdigest()[:8]
        text += (
            f"\n### 09:{number:02d} {question} <!-- turn:{turn} -->\n"
            f"**Asked** {question}\n**Answered** {answer}\n"
        )
    return text


DAYS = {
    "2026-11-18.md": day(
        "2026-11-18",
        ("Which port does the staging gateway use?", "It listens on 7443, 443 is taken."),
        ("Why is the nightly build slow?", "The cache of the compiler was thrown away each time."),
    ),
    "2026-11-19.md": day(
        "2026-11-19",
        ("Who owns the billing service?", "The payments team, Priya is on call this week."),
        ("How are secrets rotated?", "By the vault, every ninety days, `bin/rotate` does it."),
        ("What broke the login page?", "ERR_404 in PolicyController, a route was renamed."),
        session="5e550002",
    ),
    "2026-11-20.md": day(
        "2026-11-20",
        ("What is left of the migration?", "Two tables:\n\n```sql\n# not a heading\nselect 1;\n```"),
        session="5e550003",
    ),
}
"""Three days, three sessions, six turns."""


@pytest.fixture(scope="session")
def real_embedder(model_home: Home) -> Embedder:
    """The real model."""
    return load_embedder(model_home, EmbeddingSettings(download=False))
