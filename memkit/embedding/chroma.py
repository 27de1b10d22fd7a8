"""Imports Chroma without the settings of the working directory."""

from __future__ import annotations

import os
import sys


def import_chroma() -> None:
    """Import `chromadb`, which takes a second.

    Chroma reads settings from a `.env` in the working directory when it is imported. That file may be a
    stranger's, or another program's and invalid for Chroma. `Settings` reads it again, unless it is made
    with `_env_file=None`.
    """
    if "chromadb" in sys.modules:
        return
    try:
        before = os.getcwd()
    except FileNotFoundError:  # the directory is gone, so there is no file in it
        before = ""
    os.chdir(os.path.abspath(os.sep))
    try:
        import chromadb  # noqa: F401
    finally:
        if before:
            os.chdir(before)
