"""How much a chunk has to do with a question, on a scale that holds across questions."""

from __future__ import annotations

import numpy as np

from memkit.recall.fusion import Scores

COVERAGE_WEIGHT = 0.5
"""What the share of the question's words counts against the cosine.

Measured on the two development sets, each asked its own questions and those of the other: of 0, 0.3,
0.5 and 1 this one told them apart best.
"""


def relevance(coverage: Scores, dense: Scores | None) -> Scores:
    """The relevance in [0, 1]: the share of the question's idf mass, and the cosine.

    Of the share alone where there is no cosine (no dense side, or a chunk without a vector).
    """
    if dense is None:
        return coverage
    both = (np.clip(dense, 0.0, 1.0) + COVERAGE_WEIGHT * coverage) / (1 + COVERAGE_WEIGHT)
    result: Scores = np.where(np.isnan(dense), coverage, both)
    return result
