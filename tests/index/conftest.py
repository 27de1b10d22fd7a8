"""Fixtures for tests of the index."""

from tests.doctor.conftest import mount
from tests.memory import real_embedder

__all__ = ["mount", "real_embedder"]
