"""Start the server, if its packages are there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

from memkit.environment import extras
from memkit.errors import MemkitError
from memkit.files import make_private_directory, write_durably
from memkit.paths import Home

if TYPE_CHECKING:
    from memkit.interface import InterfaceMemory as Memory

HOST, PORT = "127.0.0.1", 8377
LOOPBACK = ("127.0.0.1", "::1", "localhost")
RATE = 600
"""The most requests of one key in any 60 seconds."""

REDIRECT = '<!DOCTYPE html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={}">\n'
"""The file that leads the browser to its link; the link itself is in no command line."""

PACKAGES = ("fastapi", "uvicorn")


def check_packages() -> None:
    """Raise `MissingPackageError` if a package is missing. Import none."""
    extras.require("serve", "`memkit serve` needs", *PACKAGES)


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a server at `host`."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def names_for(host: str, allowed: Iterable[str]) -> set[str]:
    """Return the names of a server at `host`: those `allowed`, this machine's, and its own."""
    try:
        is_name = not ip_address(host).is_unspecified  # 0.0.0.0 in a Host header is an attack
    except ValueError:
        is_name = bool(host)
    return {*allowed, *LOOPBACK, *[host] * is_name}


def serve(
    open_memory: Callable[[], Memory],
    home: Home,
    host: str,
    port: int,
    hosts: Iterable[str],
    rate: int,
    is_listening: Callable[[str, list[str]], None],
    *,
    with_page: bool = False,
) -> None:
    """Answer requests until SIGINT or SIGTERM.

    `is_listening` gets the address, and with a page a link to show, and a file to open. Without a page
    there must be a key.
    `hosts` are more names to answer under, `rate` is the most requests of a key in a minute. Port 0 is any
    free one. Raise `MemkitError`.
    """
    check_packages()
    from memkit.serve.keys import Keys

    keys = Keys(home)
    if not keys.all() and not with_page:
        raise MemkitError("there is no key yet; you can make one with `memkit serve key --role read`")
    # They take a second to import.
    from memkit.serve.app import make_app
    from memkit.serve.link import Link
    from memkit.serve.live import Live
    from memkit.serve.running import listening, run

    with listening(host, port) as bound, ExitStack() as at_end:
        shown = f"[{host}]" if ":" in host else host
        port = bound.getsockname()[1]
        address = f"http://{shown}:{port}"
        links, openings = [], []
        if with_page:
            file = Path(home.run, f"open-{port}.html")
            links = [Link(), Link(file=str(file))]
            printed, opened = (f"{address}/#token={link.token}" for link in links)
            openings = [printed, file.as_uri()]
            make_private_directory(home.run)
            at_end.callback(file.unlink, missing_ok=True)
            write_durably(str(file), REDIRECT.format(opened).encode())
        is_listening(address, openings)
        live = Live(open_memory)
        run(make_app(open_memory, keys, names_for(host, hosts), rate, links, live), bound, live.end)
