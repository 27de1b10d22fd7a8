"""Fixtures for tests of pointers."""

from tests.memory import real_embedder

__all__ = ["real_embedder"]
