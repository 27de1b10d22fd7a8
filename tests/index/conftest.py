"""Fixtures for tests of the index."""

import pytest

from tests.doctor.conftest import mount
from tests.memory import Memory, make_memory

__all__ = ["large", "mount"]


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory) -> Memory:
    """After 1,000 rows Chroma writes the vectors to files of their own. Tests change a copy."""
    text = "\n".join(f"# Section {n}\n\n" + f"word{n} " * 16 + "\n" for n in range(1050))
    memory = make_memory(tmp_path_factory.mktemp("large"), {"notes.md": text})
    memory.sync()
    return memory
