"""Fixtures for tests of search."""

from tests.memory import real_embedder

__all__ = ["real_embedder"]
