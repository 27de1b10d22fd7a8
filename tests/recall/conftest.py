"""Fixtures for tests of recall."""

from tests.memory import real_embedder

__all__ = ["real_embedder"]
