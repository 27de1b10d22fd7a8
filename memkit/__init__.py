"""memkit: a memory for Claude Code.

Sessions become daily Markdown, which is indexed and searched. Markdown is the source of truth; everything
else is derived from it.

    from memkit import Memory

    print(Memory().search("which port does the staging gateway use").results)
"""

from __future__ import annotations

TYPE_CHECKING = False  # hooks import this package: importing `typing` takes longer than all else they do
if TYPE_CHECKING:
    from typing import Any

    from memkit.memory import Memory

__all__ = ["Memory"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Import `Memory` when it is first used."""
    if name == "Memory":
        from importlib import import_module

        return import_module("memkit.memory").Memory
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
