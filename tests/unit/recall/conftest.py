"""Fixtures for tests of recall."""

from tests.unit.memory import real_embedder

__all__ = ["real_embedder"]
