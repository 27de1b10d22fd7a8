"""Fixtures for tests of browse."""

from tests.memory import real_embedder

__all__ = ["real_embedder"]
