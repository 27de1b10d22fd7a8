"""Measure which share of the encoder's speed indexing keeps, on the same text with the real model.

    python benchmarks/throughput.py --chunks N

Alternates, in one process, the encoder alone and the whole indexing of a new memory of the same text, with
other text in each round. So the ratio holds where seconds are noise. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from pathlib import Path

import resources
from growth import Place, RandomEmbedder
from synthetic import SyntheticMemory, write_memory

from memkit.embedding import Embedder, load_embedder
from memkit.paths import Home
from memkit.settings import EmbeddingSettings

ROUNDS = 4


def measure(
    embedder: Embedder, root: Path, chunks: int, seed: int
) -> tuple[int, int, float, float]:
    """Return chunks and windows of a new memory, and the seconds of the encoder alone and of indexing."""
    place = Place(root)
    write_memory(SyntheticMemory(seed), place.memory, chunks)
    place.sync(RandomEmbedder())  # get the chunks, and import what indexing would
    windows = [
        window for chunk in place.snapshot().chunks() for window in embedder.windows(chunk.text)
    ]
    alone, _ = resources.timed(embedder.embed, windows)
    shutil.rmtree(place.home.index)
    indexing, report = resources.timed(place.sync, embedder)
    assert report.embedded == report.chunks
    return report.chunks, len(windows), alone, indexing


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare indexing with the encoder alone.")
    parser.add_argument("--chunks", type=int, default=512)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="memkit-throughput-") as name:
        root = Path(name).resolve()
        embedder = load_embedder(Home.from_environment(), EmbeddingSettings(download=False))
        rounds = [
            measure(embedder, root / str(seed), arguments.chunks // ROUNDS, seed)
            for seed in range(ROUNDS)
        ]
    chunks, windows, alone, indexing = map(sum, zip(*rounds, strict=True))
    figures = {
        "chunks": chunks,
        "windows": windows,
        "encoder_seconds": alone,
        "indexing_seconds": indexing,
        "ratio": alone / indexing,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
