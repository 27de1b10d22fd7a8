"""The front of the package: its names resolve, and importing it loads nothing heavy."""

from __future__ import annotations

import subprocess
import sys


def test_importing_the_package_loads_nothing_heavy() -> None:
    program = (
        "import sys, memkit.index, memkit.index.catalog, memkit.index.memory_files\n"
        "print([name for name in ('numpy', 'chromadb', 'rank_bm25', 'filelock') if name in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
