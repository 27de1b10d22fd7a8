"""`memkit show`."""

from __future__ import annotations

import io
import os
import re
import sys
from shlex import quote
from typing import TYPE_CHECKING

import click

from memkit import anchors
from memkit.cli.context import Context, command, node_named
from memkit.cli.output import plain, styled
from memkit.cli.screen import page, width

if TYPE_CHECKING:
    from markdown_it.token import Token
    from rich.markdown import Markdown

    from memkit.browse.names import Entry

# Render Markdown of a memory on the terminal, with rich.
#
# The text may come from anybody. HTML in it is shown as text, links show their address, and nothing that
# steers a terminal gets through. The style suits light and dark: weight and basic colors, no background.

_STYLES = {
    "markdown.h1": "bold underline",
    "markdown.h2": "bold magenta",
    "markdown.h3": "bold",
    "markdown.h4": "bold",
    "markdown.h5": "bold",
    "markdown.h6": "bold",
    "markdown.code": "cyan",
    "markdown.code_block": "cyan",
    "markdown.block_quote": "dim",
    "markdown.item.number": "none",
    "markdown.link": "underline",
    "markdown.link_url": "dim",
    "markdown.table.header": "bold",
    "markdown.table.border": "dim",
}

_SHOWN_KEYS = ("session", "turn", "grip", "note", "fact")
"""Keys of anchors whose id other commands take."""

_SESSION_CHARACTERS = 8
_OPEN, _CLOSE = "\ue000", "\ue001"
"""Private characters around an id until it gets its style: rich knows no dim text in Markdown."""

_MARKED = re.compile(f"{_OPEN}([^{_CLOSE}]*){_CLOSE}")
_PRIVATE = re.compile(f"[{_OPEN}{_CLOSE}]|&#(?:x0*e00[01]|0*5734[45]);", re.IGNORECASE)
"""Foreign text that would read as memkit's marks, also as character references."""


def with_ids(markdown: str) -> str:
    """Return `markdown` safe and without anchors, but with the ids of its entries in parentheses."""
    return _MARKED.sub(r"(\1)", _marked(markdown))


def render(markdown: str, columns: int, *, color: bool) -> str:
    """Return `markdown` rendered for a terminal of `columns` columns, with the ids of its entries, dim."""
    from rich.console import Console
    from rich.theme import Theme

    file = io.StringIO()
    console = Console(
        file=file, width=columns, theme=Theme(_STYLES), highlight=False, legacy_windows=False,
        force_terminal=color, color_system="standard" if color else None, no_color=not color,
    )  # fmt: skip
    console.print(_document(_marked(markdown)))
    lines = "\n".join(line.rstrip() for line in file.getvalue().split("\n"))
    return _MARKED.sub("\x1b[0;2m(\\1)\x1b[0m" if color else r"(\1)", lines).strip("\n")


def _marked(markdown: str) -> str:
    """Return `markdown` safe, with the id of each line's anchor in private characters at its end."""
    text = _PRIVATE.sub("\ufffd", plain(markdown))
    return "\n".join(map(_marked_line, text.split("\n")))


def _marked_line(line: str) -> str:
    pairs = anchors.parse(line) if "<!--" in line else {}
    shown = anchors.strip(line).rstrip() if pairs else line
    names = [pairs[key] for key in _SHOWN_KEYS if key in pairs and "overview" not in pairs]
    if "session" in pairs:
        names[0] = names[0][:_SESSION_CHARACTERS]
    return f"{shown} {_OPEN}{' '.join(names)}{_CLOSE}" if names else shown


def _document(text: str) -> Markdown:
    from markdown_it import MarkdownIt
    from rich import markdown
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.markdown import Markdown
    from rich.padding import Padding
    from rich.text import Text

    class Heading(markdown.Heading):
        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            self.text.justify = "left"
            yield self.text

    class CodeBlock(markdown.CodeBlock):
        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            style = console.get_style(self.style_name)
            yield Padding(Text(str(self.text).rstrip(), style), (0, 0, 0, 4))

    own = {"heading_open": Heading, "fence": CodeBlock, "code_block": CodeBlock}
    document = Markdown("", hyperlinks=False)
    document.elements = {**Markdown.elements, **own}  # type: ignore[misc]
    parser = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
    document.parsed = parser.parse(text)
    for token in document.parsed:
        token.content = plain(token.content)
        if token.children:
            token.children = list(_shown(token.children))
    return document


def _shown(children: list[Token]) -> list[Token]:
    """Return inline tokens as they are shown: safe, lines as written, and links into the page as text."""
    found = []
    is_local: list[bool] = []
    for token in children:
        if token.type == "link_open":
            href = plain(str(token.attrs.get("href", "")))
            token.attrs["href"] = href
            is_local.append(href.startswith("#"))
        if token.type == "image":
            token.type, token.tag, token.children = "text", "", None
            token.content = f"[image: {token.content}]"
        if token.type == "softbreak":
            token.type = "hardbreak"  # a conversation's lines mean something
        token.content = plain(token.content)
        drops = token.type in ("link_open", "link_close") and is_local[-1]
        if token.type == "link_close":
            is_local.pop()
        if not drops:
            found.append(token)
    return found


MOST_COLUMNS = 100
"""The widest text; longer lines are hard to read."""


@command("show")
@click.argument("name", nargs=-1, required=True)
def show_command(context: Context, name: tuple[str, ...]) -> None:
    """Show a day, a session, a turn, or anything else with an ID.

    NAME is a day (2026-11-20, last tuesday), a week, month, or year (2026-W47, 2026-11, 2026), or an ID:
    of a session, turn, result, citation, note, or fact. The first characters of an ID are enough. A terminal
    shows rendered Markdown, in $PAGER if it is long; a pipe gets the Markdown.

    \b
      memkit show last tuesday
      memkit show 8b52f4fb
    """
    entry = context.memory().show(node_named(" ".join(name)))
    if context.as_json:
        context.print_json(entry.as_dict())
        return
    if sys.stdout.isatty():
        color = not os.environ.get("NO_COLOR")
        text = render(entry.markdown, min(width(), MOST_COLUMNS), color=color)
    else:
        text = with_ids(entry.markdown).rstrip("\n")
    page("\n".join([text, "", *_origin(entry, context.project.root)]))


def _origin(entry: Entry, root: str) -> list[str]:
    if not entry.path:
        return ["The rest of its file and its transcript are on the colleague's machine."]
    place = os.path.relpath(entry.path, root)
    lines = [f"{place}:{entry.line}" if entry.line else place]  # a period has no line of its own
    if entry.session and entry.kind == "session":
        lines.append(f"original exchange: memkit transcript {quote(entry.session)}")
    elif entry.session and entry.turns:
        turn = quote(entry.turns[0])
        lines.append(f"original exchange: memkit transcript {quote(entry.session)} --turn {turn}")
    if entry.kind == "citation":
        lines.append(f"proof: memkit cite {quote(entry.id)}")
    return [styled(line, dim=True) for line in lines]
