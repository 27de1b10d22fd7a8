"""Fixtures for tests of the index."""

from tests.unit.memory import real_embedder

__all__ = ["real_embedder"]
