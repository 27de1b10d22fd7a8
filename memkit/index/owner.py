"""The id by which a memory home knows its own rows on a Chroma server that several homes share."""

from __future__ import annotations

import os
import re
import uuid

from memkit.errors import IndexStoreError
from memkit.files import make_private_directory, write_durably
from memkit.paths import Home

_ID = re.compile(r"[0-9a-f]{32}")


def owner_of(home: Home) -> str:
    """Return the random id of the home, made on first use: 32 hex characters.

    The caller holds the index lock. Raises `IndexStoreError`. A damaged file is an error, not a reason for
    a new id: the rows of the old one would stay on the server for ever.
    """
    path = home.owner
    try:
        with open(path, encoding="ascii") as file:
            found = file.read(100).strip()
    except FileNotFoundError:
        found = uuid.uuid4().hex
        try:
            make_private_directory(os.path.dirname(path))
            write_durably(path, found.encode("ascii"))
        except OSError as error:
            raise IndexStoreError(f"cannot write {path}: {error.strerror or error}") from error
    except (OSError, ValueError) as error:
        raise IndexStoreError(f"cannot read the id of this memory home in {path}: {error}") from error
    if not _ID.fullmatch(found):
        raise IndexStoreError(
            f"{path} does not hold the id of this memory home (32 hex characters); restore that file, or "
            "remove it to start with new rows on the Chroma server"
        )
    return found
