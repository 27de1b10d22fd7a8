"""The one-time links of `memkit serve --open`: a token becomes a key that ends with the server.

Other users of the machine can read the arguments of a command, so the browser opens a private file that leads
to the link. Each token works once. If it comes twice, someone else has it, and its key ends too (RFC 6749,
4.1.2). The terminal shows a link of its own, so that the user can open that one, too.

The page's key may read and write. To erase, it needs the confirmation that a dry run returned: it works once,
for exactly what that dry run listed, and until the next one.
"""

from __future__ import annotations

import hmac
import secrets
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from memkit.errors import MemkitError
from memkit.serve.keys import PREFIX, ApiKey, digest

if TYPE_CHECKING:
    from memkit.forget.selection import ForgetSelection

SECONDS = 600
"""The lifetime of an unused token."""

KEY_ID = "page"
RATE = 6000
"""The most requests of the page in any 60 seconds. It searches with each key press."""


class LinkError(MemkitError):
    """The token is wrong, used, or too old."""


class Link:
    """A token, and the key that it was exchanged for. Both are in this process's memory only."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, file: str = "") -> None:
        """`clock` returns seconds. `file` leads to the link, and is removed when it is used."""
        self.file = file
        self.token = secrets.token_urlsafe(32)
        self._clock = clock
        self._ends = clock() + SECONDS
        self._used = False
        self._key: ApiKey | None = None
        self._erasable: tuple[str, ForgetSelection] | None = None
        self._lock = threading.Lock()

    def has(self, token: str) -> bool:
        """Return whether this is the token. The time that takes does not depend on it."""
        return hmac.compare_digest(digest(token), digest(self.token))

    def redeem(self) -> str:
        """Return the secret of a new key, once. Raise `LinkError`."""
        with self._lock:
            if self.file:
                Path(self.file).unlink(missing_ok=True)
            if self._used:
                self._key = None
                raise LinkError(
                    "this link was opened twice, so it may be in wrong hands, and the page is locked; end "
                    "the server, and run `memkit serve --open` again"
                )
            if self._clock() > self._ends:
                raise LinkError("this link is too old; you can run `memkit serve --open` again")
            secret = PREFIX + secrets.token_urlsafe(32)
            self._used = True
            self._key = ApiKey(KEY_ID, "the page", "write", digest(secret), round(time.time()))
            return secret

    def confirmation_for(self, selection: ForgetSelection) -> str:
        """Return what confirms the erasing of a selection, once."""
        secret = secrets.token_urlsafe(32)
        self._erasable = secret, selection
        return secret

    def confirmed(self, secret: str) -> ForgetSelection:
        """Return the selection that a confirmation is for. Raise `LinkError`."""
        with self._lock:
            given, self._erasable = self._erasable, None
        if given is None or not hmac.compare_digest(digest(given[0]), digest(secret)):
            raise LinkError("the page erases only what it has just shown; open the entry again")
        return given[1]

    def find(self, secret: str) -> ApiKey | None:
        """Return the key with this secret, or None. The time that takes does not depend on the secret."""
        key = self._key
        return key if key is not None and hmac.compare_digest(key.hash, digest(secret)) else None


def redeem(links: Iterable[Link], token: str) -> str:
    """Return the secret of a new key for the token of one of `links`. Raise `LinkError`."""
    found = [one for one in links if one.has(token)]
    if not found:
        raise LinkError("this link belongs to another server; open the one that `memkit serve --open` prints")
    return found[0].redeem()
