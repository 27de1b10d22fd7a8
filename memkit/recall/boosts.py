"""What raises or lowers a result beside its words: the file at hand, instructions, doubts, and its age."""

from __future__ import annotations

from datetime import date
from pathlib import PurePosixPath

import numpy as np
from numpy.typing import NDArray

from memkit.recall.corpus import Corpus
from memkit.recall.filters import is_at
from memkit.recall.fusion import Scores
from memkit.settings.load import SearchSettings


def recency(corpus: Corpus, half_life_days: float, today: date) -> Scores:
    """1 for an entry of today, one half for one `half_life_days` old; 0 for one without a date."""
    days = corpus.columns["day"]
    ages = np.maximum(0, today.toordinal() - days)
    result: Scores = np.where(days > 0, 0.5 ** (ages / half_life_days), 0.0)
    return result


def boosts(corpus: Corpus, settings: SearchSettings, file: str, recency: Scores) -> Scores:
    """The factor for each chunk. `file` is the file being edited, relative to the project, or ""."""
    factors = np.ones(len(corpus))
    factors[corpus.where("kind", lambda kind: kind == "instruction")] *= settings.instruction_boost
    factors[corpus.where("kind", lambda kind: kind == "unverified")] *= settings.unverified_factor
    if file:
        factors[_in_domain(corpus, settings, file)] *= settings.domain_boost
    return factors * (1 + settings.recency_boost * recency)


def _in_domain(corpus: Corpus, settings: SearchSettings, file: str) -> NDArray[np.bool_]:
    """Which chunks are about the part of the code that `file` belongs to.

    Those in the directory of the memory that `search.domains` names for the innermost directory of
    the file; else those whose own directory shares its name with one of the file's directories.
    """
    pairs = [domain.partition("=")[::2] for domain in settings.domains]
    fitting = [
        (code.strip("/ "), memory.strip("/ "))
        for code, memory in pairs
        if is_at(file, code.strip("/ "))
    ]
    if fitting:
        memory = max(fitting, key=lambda pair: len(pair[0]))[1]
        return corpus.where("source", lambda source: is_at(source, memory))
    directories = PurePosixPath(file).parent.parts
    return corpus.where("domain", lambda domain: domain in directories)
