"""The keys of the HTTP API: `serve-keys.json` in the memory home. It holds hashes only.

A key is 256 random bits, so a plain SHA-256 is enough: there is nothing to guess.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from filelock import FileLock

from memkit.errors import DamagedFileError, MemkitError, NotFoundError
from memkit.files import PRIVATE_FILE, make_private_directory
from memkit.paths import Home
from memkit.state import read_state, write_state
from memkit.text import one_line

VERSION = 1
"""The version of the file's format."""

ROLES = ("read", "write", "admin")
"""The roles of keys. Each includes the permissions of those before it."""

PREFIX = "memkit_key_"
"""`memkit.privacy` knows keys by it."""

NAME_CHARACTERS = 60
LOCK_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A stored key. `created` is in seconds since the epoch."""

    id: str
    name: str
    role: str
    hash: str
    created: float

    def may(self, role: str) -> bool:
        """Return whether it may do what `role` may."""
        return ROLES.index(self.role) >= ROLES.index(role)


class Keys:
    """The keys of one memory home. A change of the file counts at once. All methods raise `MemkitError`."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._seen: tuple[int, ...] | None = None
        self._keys: list[ApiKey] = []

    def all(self) -> list[ApiKey]:
        """Return all keys, oldest first."""
        try:
            status = os.stat(self._home.serve_keys, follow_symlinks=False)
        except FileNotFoundError:
            return []
        if not stat.S_ISREG(status.st_mode) or (os.name != "nt" and status.st_mode & 0o022):
            raise DamagedFileError(
                f"{self._home.serve_keys} is a link, or others may change it, so no key in it counts; in a "
                "terminal of your own, remove it and make new keys"
            )
        seen = status.st_mtime_ns, status.st_size, status.st_ino
        if seen != self._seen:
            self._keys = read_state(self._home.serve_keys, VERSION, _from_state) or []
            self._seen = seen
        return self._keys

    def create(self, name: str, role: str) -> tuple[ApiKey, str]:
        """Make a key with a name to know it by. Return it and its secret, which is kept nowhere."""
        if role not in ROLES:
            raise MemkitError(f"there is no role {role!r}; there are {', '.join(ROLES)}")
        secret = PREFIX + secrets.token_urlsafe(32)
        made = ApiKey(
            secrets.token_hex(4), one_line(name, NAME_CHARACTERS), role, digest(secret), round(time.time())
        )
        with self._changing() as keys:
            keys.append(made)
        return made, secret

    def revoke(self, name: str) -> ApiKey:
        """Remove the key with this id."""
        with self._changing() as keys:
            for one in keys:
                if one.id == name:
                    keys.remove(one)
                    return one
        raise NotFoundError(f"there is no key {name!r}; `memkit serve keys` lists them")

    def find(self, secret: str) -> ApiKey | None:
        """Return the key with this secret, or None. The time that takes does not depend on the secret."""
        wanted, found = digest(secret), None
        for one in self.all():
            if hmac.compare_digest(one.hash, wanted):
                found = one
        return found

    @contextmanager
    def _changing(self) -> Iterator[list[ApiKey]]:
        make_private_directory(self._home.run)
        lock = FileLock(os.path.join(self._home.run, "serve-keys.lock"), mode=PRIVATE_FILE)
        with lock.acquire(timeout=LOCK_SECONDS):
            keys = list(self.all())
            yield keys
            write_state(self._home.serve_keys, VERSION, {"keys": [asdict(one) for one in keys]})


def digest(secret: str) -> str:
    """Return the hash by which a secret is stored and compared."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def _from_state(value: dict[str, Any]) -> list[ApiKey]:
    keys = [ApiKey(**one) for one in value["keys"]]
    for one in keys:
        if one.role not in ROLES or not all(isinstance(text, str) for text in (one.id, one.name, one.hash)):
            raise ValueError("a key has no role that memkit knows, or is not text")
    return keys
