"""Fixtures for tests of the index."""

from tests.unit.health.conftest import mount
from tests.unit.memory import real_embedder

__all__ = ["mount", "real_embedder"]
