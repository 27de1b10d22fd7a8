"""A memory about three subjects, one a session, with an embedder that sees only their words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.memory import Memory, day, make_memory

SUBJECTS = {
    "gateway": "staging gateway port proxy nginx upstream",
    "billing": "billing invoice webhook stripe refund payment",
    "garden": "garden tomato compost seedling watering greenhouse",
}


class SubjectEmbedder:
    """Vectors that say which subject's words a text holds, with a little noise that depends on the text."""

    name = "subjects"
    dimensions = 16

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = []
        for text in texts:
            random = np.random.default_rng(sum(map(ord, text)))
            row = random.normal(0, 0.05, self.dimensions)
            for place, words in enumerate(SUBJECTS.values()):
                row[place] += sum(word in text for word in words.split())
            rows.append(row / np.linalg.norm(row))
        return np.array(rows, np.float32).reshape(len(rows), self.dimensions)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        found: NDArray[np.float32] = self.embed([text])[0]
        return found

    def windows(self, text: str) -> list[str]:
        return [text]


def talk(subject: str, number: int) -> tuple[str, str]:
    """A turn on a subject: what was asked and answered."""
    words = SUBJECTS[subject].split()
    first, second, third = (words[(number + shift) % len(words)] for shift in (0, 1, 3))
    asked = f"What about the {first} and the {second}, case {number}?"
    return asked, f"The {subject} has its {third} in order, {words[0]} {words[1]} included."


def days(turns: int, *, first: int = 0) -> dict[str, str]:
    """Day files with `turns` turns on each subject, each subject on days of its own."""
    found = {}
    for place, subject in enumerate(SUBJECTS):
        for number in range(first, first + turns, 4):
            name = f"2026-{3 + place:02d}-{1 + number // 4:02d}"
            own = [talk(subject, one) for one in range(number, min(number + 4, first + turns))]
            found[f"{name}.md"] = day(name, *own, session=f"5e55{place}{number:03d}")
    return found


def make_subjects(root: Path, turns: int = 8, **settings: Any) -> Memory:
    """An indexed memory with `turns` turns on each of the three subjects."""
    memory = make_memory(root, days(turns), embedder=SubjectEmbedder(), **settings)  # type: ignore[arg-type]
    memory.sync()
    return memory
