"""The one-time link of `memkit serve --open`: its token becomes a key that ends with the server.

A browser gets the link as an argument of a command, so for a moment other users of the machine can read it.
The token works once. If it comes twice, someone else has it, and the key ends too (RFC 6749, 4.1.2).
"""

from __future__ import annotations

import hmac
import secrets
import threading
import time
from collections.abc import Callable

from memkit.errors import MemkitError
from memkit.serve.keys import PREFIX, ApiKey, digest

SECONDS = 600
"""How long the token works."""

KEY_ID = "page"
RATE = 6000
"""The most requests of the page in any 60 seconds. It searches with each key press."""


class LinkError(MemkitError):
    """The token is wrong, used, or too old."""


class Link:
    """A token, and the key that it was exchanged for. Both are in this process's memory only."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` returns seconds."""
        self.token = secrets.token_urlsafe(32)
        self._clock = clock
        self._ends = clock() + SECONDS
        self._used = False
        self._key: ApiKey | None = None
        self._lock = threading.Lock()

    def redeem(self, token: str) -> str:
        """Return the secret of a new key, once. Raise `LinkError`."""
        if not hmac.compare_digest(digest(token), digest(self.token)):
            raise LinkError("this link is not of this server; open the one that `memkit serve --open` shows")
        with self._lock:
            if self._used:
                self._key = None
                raise LinkError(
                    "this link was opened twice, so it may be in wrong hands, and the page is locked; the "
                    "user can run `memkit serve --open` again"
                )
            if self._clock() > self._ends:
                raise LinkError("this link is too old; the user can run `memkit serve --open` again")
            secret = PREFIX + secrets.token_urlsafe(32)
            self._used = True
            self._key = ApiKey(KEY_ID, "the page", "admin", digest(secret), round(time.time()))
            return secret

    def find(self, secret: str) -> ApiKey | None:
        """Return the key with this secret, or None. The time that takes does not depend on the secret."""
        key = self._key
        return key if key is not None and hmac.compare_digest(key.hash, digest(secret)) else None
