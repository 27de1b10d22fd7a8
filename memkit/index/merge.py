"""Keep the number of segments small, and their files free of chunks that no search finds any more.

A merge copies chunks as bytes into a new segment, then writes the manifest. Killed before that, it leaves
the state as it was. Segments merge with those of about their own size: so a chunk is copied only a few times,
however large the memory is.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

from memkit.index.manifest import Entry, Run, runs_of
from memkit.index.reader import open_current
from memkit.index.segment import write_merged
from memkit.index.snapshot import Snapshot, remove_others, unwritable, write_manifest

FULL_CHUNKS = 4096
"""A segment with at least this many live chunks is not merged with others."""

SMALL_CHUNKS = 32
FACTOR = 4
"""Segments of up to `SMALL_CHUNKS` are of one size, then those of up to `FACTOR` times as many, and so on.
`FACTOR` segments of one size are merged."""


def due(snapshot: Snapshot) -> list[int]:
    """Return the segments of a snapshot to merge now; none if no merge is due."""
    return choose([len(one) for one in snapshot.segments], live_chunks(snapshot))


def merge(snapshot: Snapshot, *groups: list[int]) -> None:
    """Replace each group of segments by one. Raise `IndexStoreError`.

    The caller holds the index lock. `snapshot` is the current one, and no longer is afterwards.
    """
    directory = snapshot.directory
    names = [one.name for one in snapshot.segments]
    entries = dict(snapshot.entries)
    try:
        for group in groups:
            own = {name: entry for name, entry in snapshot.entries.items() if entry.segment in group}
            runs = runs_of(own)
            if not runs:
                continue
            entries |= _moved(own, runs, len(names))
            names.append(write_merged(directory, snapshot.segments, runs))
    except OSError as error:
        raise unwritable(directory, error) from error
    known = {one.name: one.stat for one in snapshot.segments}
    write_manifest(directory, snapshot.root, names, entries, known=known)


def erase_dead(directory: Path) -> bool:
    """Remove from the files of a collection all chunks that no search finds any more.

    Return False if they cannot be read. The caller holds the index lock. A killed call can be repeated. Raise
    `IndexStoreError`.
    """
    snapshot = open_current(directory, Snapshot)
    if snapshot is None:
        return False
    live = live_chunks(snapshot)
    dead = [number for number, one in enumerate(snapshot.segments) if live[number] < len(one)]
    if dead:
        merge(snapshot, *([number] for number in dead))
    else:
        remove_others(directory, [one.name for one in snapshot.segments])
    return True


def live_chunks(snapshot: Snapshot) -> list[int]:
    """Return the number of chunks that count of each segment."""
    counts: Counter[int] = Counter()
    for entry in snapshot.entries.values():
        counts[entry.segment] += entry.last - entry.first
    return [counts[number] for number in range(len(snapshot.segments))]


def choose(sizes: list[int], live: list[int]) -> list[int]:
    """Return the segments to merge now, given all their chunks, and those that count. None may be due."""
    for number, (size, own) in enumerate(zip(sizes, live, strict=True)):
        if size > max(SMALL_CHUNKS, 2 * own):
            return [number]
    by_size: defaultdict[int, list[int]] = defaultdict(list)
    for number, own in enumerate(live):
        tier, most = 0, SMALL_CHUNKS
        while own > most:
            tier, most = tier + 1, most * FACTOR
        if own < FULL_CHUNKS:
            by_size[tier].append(number)
    due = next((same for _, same in sorted(by_size.items()) if len(same) >= FACTOR), [])
    chosen: list[int] = []
    for number in sorted(due, key=live.__getitem__):
        if sum(live[one] for one in chosen) + live[number] <= 2 * FULL_CHUNKS:
            chosen.append(number)
    return chosen


def _moved(entries: dict[str, Entry], runs: list[Run], segment: int) -> dict[str, Entry]:
    moved = {}
    start = 0
    for source, entry in sorted(entries.items()):
        size = entry.last - entry.first
        if size:
            moved[source] = entry._replace(segment=segment, first=start, last=start + size)
            start += size
    assert start == sum(run.last - run.first for run in runs)
    return moved
