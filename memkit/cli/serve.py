"""`memkit serve`."""

from __future__ import annotations

import logging
import os
import sys
import threading

import click

from memkit.cli.context import Context, command
from memkit.errors import MemkitError
from memkit.projects.trust import in_session
from memkit.serve import server
from memkit.serve.keys import ROLES, Keys
from memkit.text import format_time

logger = logging.getLogger(__name__)

ACTIONS = ("key", "keys", "revoke")


@command("serve")
@click.argument("action", type=click.Choice(ACTIONS), metavar=f"[{'|'.join(ACTIONS)}]", required=False)
@click.argument("key_id", metavar="[ID]", required=False)
@click.option("--host", default=server.HOST, show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=server.PORT, show_default=True, help="0: any free one."
)
@click.option(
    "--allow-host", "hosts", multiple=True, metavar="NAME", help="Also answer under this name, as of a proxy."
)
@click.option(
    "--rate", type=click.IntRange(1, 1_000_000), default=server.RATE, show_default=True,
    help="Most requests of one key in a minute.",
)  # fmt: skip
@click.option(
    "--role", type=click.Choice(ROLES), default="read", show_default=True, help="Permissions of the new key."
)
@click.option("--name", default="", help="A name to know the new key by.")
@click.option("--open", "is_open", is_flag=True, help="Show the memory as a page in the browser.")
def serve_command(
    context: Context, action: str | None, key_id: str | None, host: str, port: int, hosts: tuple[str, ...],
    rate: int, role: str, name: str, is_open: bool,
) -> None:
    """Serve this project's memory to other programs over HTTP, until Ctrl-C.

    Each request needs a key. `key` makes one and shows it once, `keys` lists them, `revoke ID` removes one.
    A key with the role read can search and read; write can also store; admin can also erase, and list jobs.
    /openapi.json describes the API. Needs the packages fastapi and uvicorn.

    With --open, it also shows a link to a page of the memory, and opens it. The link works once, for 10
    minutes, and the page as long as the server. That needs no key.

    \b
      memkit serve --open
      memkit serve key --role write --name editor
      memkit serve
      memkit serve --project ~/src/shop --port 9000
    """
    if action == "revoke" and key_id is None:
        raise click.UsageError("`memkit serve revoke` takes the ID of a key")
    if action != "revoke" and key_id is not None:
        raise click.UsageError("only `memkit serve revoke` takes an ID")
    if action is not None and is_open:
        raise click.UsageError("--open goes with `memkit serve` alone")
    if action == "key":
        _make_key(context, name, role)
    elif action == "keys":
        _list_keys(context)
    elif key_id is not None:
        gone = Keys(context.home).revoke(key_id)
        context.report({"revoked": gone.id}, f"Revoked {gone.id} ({gone.role}) {gone.name}".rstrip())
    else:
        _serve(context, host, port, hosts, rate, is_open)


def _make_key(context: Context, name: str, role: str) -> None:
    if in_session():
        raise MemkitError("the key would be in the conversation; run this in a terminal of your own")
    made, secret = Keys(context.home).create(name, role)
    context.say(f"key {made.id} with the role {role}; it is shown this once")
    context.report({"id": made.id, "role": role, "name": made.name, "key": secret}, secret)


def _list_keys(context: Context) -> None:
    keys = Keys(context.home).all()
    rows = [{"id": one.id, "role": one.role, "name": one.name, "created": one.created} for one in keys]
    lines = [f"{one.id}  {one.role:<5}  {format_time(one.created)}  {one.name}".rstrip() for one in keys]
    context.report({"keys": rows}, *(lines or ["No key; `memkit serve key` makes one."]))


def _serve(context: Context, host: str, port: int, hosts: tuple[str, ...], rate: int, is_open: bool) -> None:
    if is_open and in_session():
        raise MemkitError("the link would be in the conversation; run this in a terminal of your own")
    if is_open and not server.is_loopback(host):
        raise MemkitError("--open shows the page on this machine only; leave out --host")
    if not server.is_loopback(host):
        context.say(
            f"warning: other machines can reach {host}, and nothing is encrypted: whoever listens in gets "
            "the keys and the memory; put a reverse proxy with TLS in front (see docs/integrations.md)"
        )
    access = logging.getLogger("memkit.serve.access")
    access.addHandler(logging.StreamHandler(sys.stderr))
    access.propagate = False

    def is_listening(address: str, links: list[str]) -> None:
        context.say(f"serving {context.project.root} at {address}; Ctrl-C ends it")
        if links:
            shown, opened = links
            context.say(f"open {shown}")
            threading.Thread(target=_show, args=(opened,), name="browser", daemon=True).start()

    server.serve(
        lambda: context.memory(for_agent=True), context.home, host, port, hosts, rate, is_listening,
        with_page=is_open,
    )  # fmt: skip


def _show(link: str) -> None:
    """Open a link in the user's browser. A browser for terminals is used only if the user chose it."""
    import webbrowser

    try:
        found = webbrowser.get()
        if type(found) is not webbrowser.GenericBrowser or os.environ.get("BROWSER"):
            found.open(link)
    except (webbrowser.Error, OSError) as error:
        logger.info("no browser shows the page: %s", error)
