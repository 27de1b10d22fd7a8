"""Fixtures for tests of questions."""

from tests.memory import real_embedder

__all__ = ["real_embedder"]
