"""The calls in a script of Claude Code's Code Mode: files and commands that only its code names.

Client 2.1.197 writes each call that a script made, and its result, but not the script. Where a client writes
only the script, its calls are read from it: `await Edit({file_path: "a.py", …})`, also `tools.Edit`, and
`` $`git status` `` for a command. That shape is constructed from the client's own instructions to the model
(2.1.332), not seen in a session. Only literals are read: what a script computes is unknown.
"""

from __future__ import annotations

import re
from typing import Any

from memkit.agents.tools import role_of

SCRIPTS = frozenset({"REPL", "Eval"})
"""The tools that run a script, their `code`."""

BY_SCRIPT = ("repl_", "toolu_cc_")
"""How the IDs of calls begin that a script made."""

MOST_CHARACTERS, MOST_CALLS = 500_000, 100
_STRING = r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`"
_PIECE = re.compile(
    r"//[^\n]*|/\*(?:[^*]|\*(?!/))*"  # a comment
    r"|(?<![\w.])\$`(?P<shell>(?:\\.|[^`\\])*)`"
    r"|\b(?P<call>[A-Z][A-Za-z]{1,30})\(\s*\{"
    rf"|(?:\b(?P<field>[a-z_]{{1,30}})\s*:\s*)?(?P<text>{_STRING})(?P<whole>\s*[,}}])?"
    r"|(?P<open>[({\[])|[)}\]]",
    re.DOTALL,
)
_ESCAPED = {"n": "\n", "t": "\t", "\n": ""}


def calls_in(code: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the commands, edits, and reads in a script: each tool with the literals of its input."""
    found: list[tuple[str, dict[str, Any]]] = []
    opened: list[dict[str, Any] | None] = []  # the brackets that are open, each with the input that it is
    for piece in _PIECE.finditer(code[:MOST_CHARACTERS]):
        if piece["shell"] is not None:
            found.append(("Bash", {"command": _unescaped(piece["shell"])}))
        elif piece["call"]:
            found.append((piece["call"], {}))
            opened += [None, found[-1][1]]
        elif piece["text"]:
            given = opened[-1] if opened else None
            # A part of a path names no file, a part of a command tells enough.
            is_dynamic = not piece["whole"] or (piece["text"][0] == "`" and "${" in piece["text"])
            if given is not None and piece["field"] and (not is_dynamic or piece["field"] == "command"):
                given[piece["field"]] = _unescaped(piece["text"][1:-1])
            if (piece["whole"] or "").endswith("}") and opened:
                opened.pop()
        elif piece["open"]:
            opened.append(None)
        elif piece[0] in ")}]" and opened:
            opened.pop()
    wanted = [one for one in found if one[1] and role_of(one[0]) in ("shell", "edit", "read")]
    return wanted[:MOST_CALLS]


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda match: _ESCAPED.get(match[1], match[1]), text, flags=re.DOTALL)
