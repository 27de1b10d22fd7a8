"""The lasting state of topics, in `projects/*.topics.json`: data that cannot be recomputed, or costs money.

It has the members of each topic, which give a similar cluster the same ID, the labels of the user and of a
model, and the changes. It holds no text of conversations besides these labels.
"""

from __future__ import annotations

import itertools
import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

from memkit.errors import DamagedFileError, MemkitError
from memkit.files import PRIVATE_FILE, make_private_directory
from memkit.index.catalog import snapshots_of
from memkit.index.chunk import digest
from memkit.index.reader import ChunkReader, open_current
from memkit.paths import Home
from memkit.projects.project import Project, Registry, digest16
from memkit.state import read_state, read_state_or_none, write_state
from memkit.topics.files import drop_outdated, key_of

logger = logging.getLogger(__name__)

VERSION = 1
"""The format version."""

SUFFIX = ".topics.json"
LOCK = "topics.json.lock"
MOST_CHANGES = 200
LOCK_SECONDS = 30.0

ID_CHARACTERS = 8
LEAST_SHARE = 0.5
LABEL_SHARE = 0.25
"""The share of a cluster that a topic which the user named needs to come before other topics."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of an earlier topic: it was split or merged `into` others, or is gone (`into` none).

    `day` is an ISO day, and "" until it is recorded.
    """

    kind: str
    id: str
    into: tuple[str, ...] = ()
    day: str = ""

    @property
    def words(self) -> str:
        """The change as words after the ID: `was split into 5f0c0e0a, 1c9d02aa`."""
        into = f" into {', '.join(self.into)}" if self.into else ""
        return "disappeared" if self.kind == "gone" else f"was {self.kind}{into}"


@dataclass(frozen=True, slots=True)
class Matched:
    """The id of each cluster, in order, and the changes of earlier topics, by id."""

    ids: list[str]
    changes: list[Change]


def match(
    clusters: Sequence[Collection[str]], earlier: Mapping[str, Collection[str]], labeled: Collection[str] = ()
) -> Matched:
    """Match `clusters` of members, which are disjoint, with the `earlier` topics.

    A topic keeps its ID as long as a cluster shares at least half of its members, or half of the cluster's.
    If several compete, the pair that shares most comes first. `labeled` are the IDs that the user named. The
    order of `clusters` does not change the result.
    """
    known = {name: frozenset(members) for name, members in earlier.items()}
    owners: dict[str, list[str]] = {}
    for name, members in known.items():
        for member in members:
            owners.setdefault(member, []).append(name)
    shared = [Counter(name for one in cluster for name in owners.get(one, ())) for cluster in clusters]
    firsts = [min(cluster, default="") for cluster in clusters]
    pairs = []
    for number, counts in enumerate(shared):
        size = len(clusters[number])
        for name, count in counts.items():
            if count >= LEAST_SHARE * min(len(known[name]), size):
                is_first = name in labeled and count >= LABEL_SHARE * size
                pairs.append((not is_first, -count, name, firsts[number], number))
    ids: dict[int, str] = {}
    for _, _, name, _, number in sorted(pairs):
        if number not in ids and name not in ids.values():
            ids[number] = name
    used = {*known}
    for number in sorted(range(len(clusters)), key=firsts.__getitem__):
        if number not in ids:
            ids[number] = _new_id(firsts[number], used)
            used.add(ids[number])
    changes = list(_changes(clusters, known, shared, ids))
    return Matched([ids[number] for number in range(len(clusters))], changes)


def _changes(
    clusters: Sequence[Collection[str]], known: Mapping[str, frozenset[str]],
    shared: Sequence[Mapping[str, int]], ids: Mapping[int, str],
) -> Iterable[Change]:
    """Yield a change for each earlier topic that did not simply live on, sorted by id."""
    living = set(ids.values())
    parts: dict[str, list[tuple[int, int]]] = {}
    for number, counts in enumerate(shared):
        for name, count in counts.items():
            parts.setdefault(name, []).append((count, number))
    for name in sorted(known):
        own = parts.get(name, [])
        # A part: a cluster that consists mostly of this topic.
        into = sorted(ids[number] for count, number in own if 2 * count > len(clusters[number]))
        if len(into) > 1:
            yield Change("split", name, tuple(into))
        elif name not in living:
            home = [ids[number] for count, number in own if count >= LEAST_SHARE * len(known[name])]
            yield Change("merged", name, (min(home),)) if home else Change("gone", name)


def _new_id(first: str, used: Collection[str]) -> str:
    """Return an id that depends only on the first member, unless it is in use."""
    numbered = (f"topic:{first}:{number}" if number else f"topic:{first}" for number in itertools.count())
    return next(one for name in numbered if (one := digest(name)[:ID_CHARACTERS]) not in used)


@dataclass(frozen=True, slots=True)
class ModelLabel:
    """A label that a model gave a topic; "" if it was asked and gave none that can be used.

    `members` are the keys of the topic's members at that time. `sources` are the ids of what the model was
    shown: bullets with their turns, and keys of notes.
    """

    text: str
    members: frozenset[str]
    sources: frozenset[str]


@dataclass(frozen=True, slots=True)
class Kept:
    """The lasting state of one topic: the user's `label`, or "", and the keys of its `members`.

    `is_gone` means that no cluster matches it now. Such a topic is kept if the user named it, and may come
    back. `model_label` is None if no model was asked.
    """

    label: str = ""
    members: frozenset[str] = frozenset()
    is_gone: bool = False
    model_label: ModelLabel | None = None

    @property
    def current_model_label(self) -> ModelLabel | None:
        """The model's label, unless more than half of the members have changed since."""
        found = self.model_label
        if found is None:
            return None
        all_members = self.members | found.members
        return found if 2 * len(self.members & found.members) >= len(all_members) else None

    def without(self, gone: Collection[str], present: Collection[str] | None = None) -> Kept:
        """Return it without the ids in `gone`, and without members that are not `present`, if that is known.

        The model's label goes if it rests on one of them.
        """
        def left(keys: frozenset[str]) -> frozenset[str]:
            return keys.difference(gone) if present is None else keys.difference(gone).intersection(present)

        named = self.model_label
        if named is not None:
            shown = named.members & named.sources
            is_kept = named.sources.isdisjoint(gone) and left(shown) == shown
            named = replace(named, members=left(named.members)) if is_kept else None
        return replace(self, members=left(self.members), model_label=named)


@dataclass(slots=True)
class KeptTopics:
    """All of `Kept`, by id, and the latest changes, oldest first."""

    root: str
    topics: dict[str, Kept] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)

    def note(self, changes: Collection[Change], today: date) -> None:
        """Add changes of today."""
        self.changes += [replace(one, day=today.isoformat()) for one in changes]
        del self.changes[:-MOST_CHANGES]


def drop_outdated_topics(home: Home, roots: Collection[str]) -> None:
    """Remove what topics of the projects at `roots` hold of entries that are gone from their indexes.

    Leave a damaged file alone: `memkit topics` reports it. Raise `MemkitError`, `OSError`.
    """
    for directory in snapshots_of(home, roots):
        chunks = open_current(directory, ChunkReader)
        drop_outdated(directory, chunks.fingerprint if chunks is not None else "")
    for root in roots:
        if not _kept_path(home, root).exists():
            continue
        try:
            with changing_kept(home, Project(root, home)) as kept:
                _drop(kept, (), _present(home, root), is_changed=True)
        except DamagedFileError as error:
            logger.warning("%s", error)


def read_kept(home: Home, project: Project) -> KeptTopics:
    """Return what is kept of a project's topics, also after a move. Raise `NewerFileError`,
    `DamagedFileError`.
    """
    path = _kept_path(home, project.root)
    if not path.exists():
        earlier = (_kept_path(home, root) for root in Registry.read(home).earlier_roots(project.root))
        path = next(filter(Path.exists, earlier), path)
    try:
        found = read_state(path, VERSION, _kept)
    except (OSError, DamagedFileError) as error:
        raise DamagedFileError(
            f"the labels of topics cannot be read: {error}; restore {path.name} from a "
            "backup, or delete it in a terminal of your own"
        ) from error
    return KeptTopics(project.root) if found is None else replace(found, root=project.root)


@contextmanager
def changing_kept(home: Home, project: Project) -> Iterator[KeptTopics]:
    """Yield what is kept of a project's topics to be changed; write it at the end. Raise `MemkitError`."""
    from filelock import FileLock, Timeout  # 0.05 s, only where something is written

    try:
        make_private_directory(home.projects)
        with FileLock(f"{home.projects}/{LOCK}", LOCK_SECONDS, mode=PRIVATE_FILE):
            kept = read_kept(home, project)
            yield kept
            write_kept(_kept_path(home, project.root), kept)
    except Timeout as error:
        raise MemkitError(f"the topics were busy for {LOCK_SECONDS:.0f} s; try again") from error
    except OSError as error:
        raise MemkitError(f"cannot change {home.projects}: {error.strerror or error}") from error


def move_kept(home: Home, root: str, project: Project) -> None:
    """Add what is kept of the topics of the project at `root` to `project`. Raise `MemkitError`."""
    if root == project.root or not _kept_path(home, root).exists():
        return
    other = read_kept(home, Project(root, home))
    with changing_kept(home, project) as kept:
        for name, one in other.topics.items():
            own = kept.topics.get(name, one)
            kept.topics[name] = Kept(
                own.label or one.label, own.members | one.members, own.is_gone,
                own.model_label or one.model_label,
            )  # fmt: skip


def drop_members(home: Home, roots: Collection[str], gone_from: Callable[[str], Collection[str]]) -> None:
    """Remove from all topics the ids that `gone_from(root)` names; for `roots` also members that no index
    holds any more.

    A model's label goes if it rests on one of them. A topic without members goes, with all its labels.
    Remove a damaged file. Raise `MemkitError`, `OSError`.
    """
    for path in kept_files(home):
        try:
            found = read_state(path, VERSION, _kept)
        except DamagedFileError:
            path.unlink(missing_ok=True)
            continue
        if found is None or path != _kept_path(home, found.root):
            continue
        is_changed = found.root in roots
        present = _present(home, found.root) if is_changed else None
        with changing_kept(home, Project(found.root, home)) as kept:
            _drop(kept, gone_from(kept.root), present, is_changed=is_changed)


def _drop(
    kept: KeptTopics, gone: Collection[str], present: Collection[str] | None, *, is_changed: bool
) -> None:
    for name, one in list(kept.topics.items()):
        if present is None and is_changed:  # what a label rests on may be gone
            one = replace(one, model_label=None)
        kept.topics[name] = one.without(gone, present)
        if not kept.topics[name].members:
            del kept.topics[name]


def kept_files(home: Home) -> list[Path]:
    """Return the paths of what is kept, of all projects."""
    return sorted(Path(home.projects).glob(f"*{SUFFIX}"))


def redact_kept(path: Path, redact: Callable[[str], str]) -> KeptTopics | None:
    """Return what a file keeps, with redacted labels; None if it is unusable. Raise `NewerFileError`."""
    kept = read_state_or_none(path, VERSION, _kept)
    if kept is not None:
        for name, one in kept.topics.items():
            named = one.model_label
            if named is not None:
                named = replace(named, text=redact(named.text))
            kept.topics[name] = replace(one, label=redact(one.label), model_label=named)
    return kept


def _present(home: Home, root: str) -> frozenset[str] | None:
    readers = [open_current(directory, ChunkReader) for directory in snapshots_of(home, {root})]
    known = [reader for reader in readers if reader is not None]
    if not known:
        return None
    chunks = (chunk for reader in known for chunk in reader.chunks())
    return frozenset(key_of(chunk) for chunk in chunks)


def _kept_path(home: Home, root: str) -> Path:
    return Path(home.projects) / f"{digest16(root)}{SUFFIX}"


def write_kept(path: Path, kept: KeptTopics) -> None:
    """Replace the file of what is kept. Raise `OSError`."""
    value: dict[str, Any] = {"root": kept.root, "topics": {}}
    for name, one in sorted(kept.topics.items()):
        value["topics"][name] = {"label": one.label, "gone": one.is_gone, "members": _joined(one.members)}
        if (named := one.model_label) is not None:
            value["topics"][name]["model"] = {
                "label": named.text, "members": _joined(named.members), "sources": _joined(named.sources),
            }  # fmt: skip
    value["changes"] = [asdict(one) for one in kept.changes]
    write_state(path, VERSION, value)


def _joined(ids: Collection[str]) -> str:
    return " ".join(sorted(ids))


def _kept(value: Mapping[str, Any]) -> KeptTopics:
    topics = {
        str(name): Kept(
            str(one["label"]), frozenset(one["members"].split()), bool(one["gone"]), _model_label(one)
        )
        for name, one in value["topics"].items()
    }
    changes = [
        Change(str(one["kind"]), str(one["id"]), tuple(map(str, one["into"])), str(one["day"]))
        for one in value["changes"]
    ]
    return KeptTopics(str(value["root"]), topics, changes)


def _model_label(topic: Mapping[str, Any]) -> ModelLabel | None:
    if "model" not in topic:
        return None
    found = topic["model"]
    members, sources = (frozenset(found[name].split()) for name in ("members", "sources"))
    return ModelLabel(str(found["label"]), members, sources)
