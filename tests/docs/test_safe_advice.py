"""No message tells its reader to agree for the user, to spend, to delete, or to become root.

An agent may follow a line literally. So such advice either says that it is for a person ("in a terminal of your own"), or
names a command that asks on a terminal and refuses without one. This test reads every text in the code, not
those that some run happens to print.
"""

from __future__ import annotations

import ast
import functools
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click

from memkit.cli import _LISTED, cli
from memkit.doctor import finding_texts

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = REPOSITORY / "memkit"

_BEGINS = r"(?:^|[;:,(—–}]\s*|\b(?:or|and|then|please|can|must|should|you)\s+)(?:also\s+|first\s+)?"
_OPTION = r"--(?:yes|force|everything|everywhere|remove)(?![\w-])"
_TARGET = r"(?!\w)(?!\s+(?:nothing|no)\b)"
RISKS = {
    "agrees for the user": re.compile(
        rf"\b(?:pass|add|use|with|append|try|say|needs?|type)\s[^;.]*?{_OPTION}"
        rf"|{_OPTION}\s+(?:also\s+)?(?:erases|deletes|replaces|skips|agrees|does|removes)\b"
        rf"|`[^`]*\bmemkit [^`]*?(?:{_OPTION}|(?<=\s)-y\b)"
    ),
    "spends": re.compile(
        rf"{_BEGINS}(?:raise|increase|lift)\s+\S*(?:daily|budget|limit)"
        rf"|{_BEGINS}(?:choose|set|pick)\s+(?:another\s+)?`?summarize\.(?:provider|daily)"
        r"|`[^`]*\bindex --rebuild\b"  # a provider is paid for all vectors
        r"|config set summarize\.(?:provider (?!none)|daily|model)|\b(?:buy|pay for|top up|upgrade your)\b",
        re.IGNORECASE,
    ),
    "deletes": re.compile(
        rf"{_BEGINS}(?:delete|remove|erase|drop|purge|empty|truncate|wipe|overwrite|uninstall){_TARGET}"
        r"|`[^`]*\b(?:rm|rmdir|unlink|shred|git clean|git reset|plugin uninstall)\b[^`]*`",
        re.IGNORECASE,
    ),
    "becomes root": re.compile(r"`[^`]*\bsudo\b|\brun [^;.]*\bas root\b"),
}
"""What a clause must not tell anybody but the user."""

ASKING = {"forget", "uninstall", "restore", "summarize", "compact"}
"""Commands that delete, overwrite, or spend. Advice may name them because they ask."""

_FOR_THE_USER = re.compile(r"\bin a terminal of your own\b|\b[Aa]sk the user\b")
_WITHOUT = re.compile(r"\b(?:without|not|never|no|instead of) `?--?[\w-]+(?: (?:and|or) --?[\w-]+)*")
_WORDS = re.compile(r" -- [^`]*`")
"""In a command, what follows is no option."""

_CLAUSE = re.compile(r"(?<=[;.!?])\s+|\n")
_FINISHES = re.compile(r"\b(?:run|with|try|use|by) `memkit forget`")
"""Without an ID, `memkit forget` finishes what was interrupted, and asks no more."""


def offenses(text: str) -> list[str]:
    """What a text tells its reader to do that only the user may decide."""
    found = []
    for clause in _CLAUSE.split(text):
        # A question on a terminal is answered by the user.
        if _FOR_THE_USER.search(clause) or clause.rstrip().endswith("?"):
            continue
        bare = _WITHOUT.sub("", _WORDS.sub("`", clause))
        found += [name for name, risk in RISKS.items() if risk.search(bare)]
        found += ["deletes"] if _FINISHES.search(clause) else []
    return found


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """The texts of a module with their lines: no docstrings, no help of an option, no description of a setting.

    A text in several pieces is one; `{…}` stands for what it fills in. The examples in the help of a command
    are texts, too.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    left_out: set[ast.AST] = set()
    for node in ast.walk(tree):
        if node in left_out:
            left_out.update(ast.iter_child_nodes(node))
            continue
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            left_out.add(node.value)
            if isinstance(node.value.value, str):
                lines = re.findall(r"^ {6}(memkit .+)$", node.value.value, re.MULTILINE)
                # Its help is where to learn what a command itself does.
                yield from ((node.lineno, f"`{line}`") for line in lines if "--rebuild" not in line)
        elif isinstance(node, ast.keyword) and node.arg in ("help", "description"):
            left_out.add(node.value)
        elif isinstance(node, ast.Subscript) and ast.unparse(node.value) == "Annotated":
            left_out.add(node.slice)  # the description of a setting
        elif (text := _text(node)) is not None:
            left_out.update(ast.iter_child_nodes(node))
            yield node.lineno, text  # type: ignore[attr-defined]


def _text(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(one) or "{…}" for one in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = [_text(node.left), _text(node.right)]
        return None if parts == [None, None] else "".join(one or "{…}" for one in parts)
    return None


def _is_prose(text: str) -> bool:
    """Whether a text can be advice: several words, and neither SQL, options, a list of words, nor a pattern."""
    is_code = re.search(r"\(\?[:!=<P]|\\[bswd]|^\s*(?:DELETE|SELECT|INSERT|VACUUM|DROP|UPDATE) ", text)
    is_list = text.count(" ") > 12 and not re.search(r"[.,;:`]", text)
    is_options = re.fullmatch(r"(?:--?[\w-]+\s*)+", text)
    return " " in text.strip() and not (is_code or is_list or is_options)


@functools.cache
def said() -> list[tuple[str, str]]:
    """Every text that a command, a hook, or the doctor may print, with its place."""
    found = []
    lines = {line for _, line in _LISTED.values()}  # "Remove memkit from this machine."
    for path in [*sorted(PACKAGE.rglob("*.py")), *sorted((REPOSITORY / "hooks").glob("*.py"))]:
        for number, text in texts(path):
            if _is_prose(text) and text not in lines:
                found.append((f"{path.relative_to(REPOSITORY)}:{number}", text))
    for code, finding in finding_texts().items():
        found += [(f"findings.toml:{code}", text) for text in (finding.what, finding.meaning, finding.fix)]
    for path in sorted((REPOSITORY / "skills").rglob("SKILL.md")):
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
            found.append((f"{path.relative_to(REPOSITORY)}:{number}", line))
    return found


def test_no_message_tells_to_agree_to_spend_or_to_delete() -> None:
    wrong = [(place, text, found) for place, text in said() if (found := offenses(text))]
    assert wrong == []


def test_they_are_found() -> None:
    known = [text for _, text in said()]
    assert len(known) > 1500
    for one in (
        "run it in a terminal of your own",  # the end of a text in two pieces
        "`memkit doctor --fix`",
        "run `memkit logs` for the details",  # of a finding
        "memkit search 'other words'",  # of a skill
        "`memkit uninstall --dry-run`",  # an example of a help
    ):
        assert any(one in text for text in known), one


def test_commands_that_delete_or_spend_ask() -> None:
    others = {"backup", "import", "projects", "setup", "sync"}  # they ask before they replace a file, write elsewhere, or trust
    context = click.Context(cli)
    commands = {name: cli.get_command(context, name) for name in cli.list_commands(context)}
    with_yes = {name for name, one in commands.items() if one and any("--yes" in option.opts for option in one.params)}
    assert with_yes - others == ASKING


def test_dangerous_advice_is_noticed() -> None:
    for text in (
        "{…} exists; name another file, or pass --yes to replace it",
        "this needs confirmation; run it again with --yes", "run `memkit setup -y`",
        "Run `memkit forget --session x --yes`.", "x keeps them (--everywhere also erases them there)",
        "{…}raise summarize.daily_usd", "the daily budget is reached; raise summarize.daily_tokens",
        "wait for tomorrow, or raise summarize.daily_usd",
        "`memkit config set summarize.provider auto` turns them on", "run `memkit index --rebuild`",
        "log in, or choose another summarize.provider", "the key has no credit; top up your account",
        "it is damaged; delete {…} and run `memkit index`", "Remove the lock, then try again.",
        "to end this note, delete the lines that are not JSON", "look at it, and remove it",
        "run `git rm --cached x`", "use `rm -r {…}`", "try `git clean -fd`",
        "run `memkit forget` to finish it", "raise the limit with `sudo sysctl x`",
        "you can erase it with `memkit uninstall --everything`",
    ):  # fmt: skip
        assert offenses(text)


def test_harmless_text_is_not() -> None:
    for text in (
        "Run restore without --yes to change these:", "run it with --yes in a terminal of your own",
        "the daily budget is reached; raise summarize.daily_tokens in a terminal of your own",
        "`memkit config set summarize.provider none` turns them off", "Forget this for good?",
        "`memkit summarize` does it now", "it was removed; run `memkit index`",
        "what memkit would delete: nothing", "ask the user to delete it",
    ):  # fmt: skip
        assert offenses(text) == []


# Every `memkit …` that a page, a help text or a message has people type is one there is.


TEXTS = sorted(
    path
    for pattern in ("*.md", "docs/*.md", "skills/**/*.md", "memkit/**/*.py", "hooks/*.py")
    for path in REPOSITORY.glob(pattern)
    if path.name != "CHANGELOG.md"  # names what was removed
)

IN_A_LINE = re.compile(r"`(?:bin/)?memkit ([^`]+)`")
ON_A_LINE = {
    ".md": re.compile(r"^ {4,}(?:\$ )?(?:bin/)?memkit (.+)$", re.MULTILINE),
    ".py": re.compile(r"^ {6}memkit (.+)$", re.MULTILINE),  # an example in the help of a command
}
ENDS = {"|", ">", "<", "&&", ";"}
"""What the shell, not memkit, reads."""

HELP = {"-h", "--help", "--version"}


def typed(text: str, kind: str = ".md") -> Iterator[list[str]]:
    """The words after `memkit` in each command of a text, without comments and brackets."""
    spans = [" ".join(found.split()) for found in IN_A_LINE.findall(text)]
    for line in spans + ON_A_LINE[kind].findall(text):
        words = []
        for word in shlex.split(line, comments=True):
            if word in ENDS or word.startswith("<<"):
                break
            words.append(word.strip("[]").replace("\\", ""))
        yield [word for word in words if word not in ("…", "OPTIONS", "")]


def complaint(words: list[str]) -> str:
    """What is wrong with a command; "" if nothing is."""
    command: click.Command = cli
    rest = list(words)
    while rest and rest[0] == "--set":  # before the command
        if len(rest) < 2 or "=" not in rest[1]:
            return "--set without a value"
        del rest[:2]
    while rest and isinstance(command, click.Group) and rest[0] not in HELP and not _stands_for_any(rest[0]):
        found = command.get_command(click.Context(command), rest[0])
        if found is None:
            return f"no command {rest[0]}"
        command = found
        del rest[0]
    options = {
        name: option
        for option in command.params
        if isinstance(option, click.Option)
        for name in (*option.opts, *option.secondary_opts)
    }
    arguments = [one for one in command.params if isinstance(one, click.Argument)]
    while rest:
        word = rest.pop(0)
        if word in HELP or isinstance(command, click.Group):
            continue
        if word == "--":  # the rest is no option, however it begins
            return "" if arguments and arguments[0].nargs < 0 else "nothing takes the words after --"
        if not word.startswith("-"):
            if not arguments:
                return f"{word!r} is one too many"
            argument = arguments[0] if arguments[0].nargs < 0 else arguments.pop(0)
            if not _fits(argument, word):
                return f"no {word!r}"
        elif word not in options:
            return f"no option {word}"
        elif not options[word].is_flag:
            values, rest = rest[: options[word].nargs], rest[options[word].nargs :]
            if len(values) < options[word].nargs or not all(_fits(options[word], v) for v in values):
                return f"no such value for {word}"
    return ""


def _fits(parameter: click.Parameter, word: str) -> bool:
    kind = parameter.type
    if not isinstance(kind, click.Choice) or _stands_for_any(word):
        return True
    return all(part in kind.choices for part in word.split("|"))


def _stands_for_any(word: str) -> bool:
    """Whether a word is a placeholder: `ID`, `PATH…`, `{something}`."""
    return word.strip("…").isupper() or word.startswith("{")


def test_commands_are_known() -> None:
    found = [
        (str(path.relative_to(REPOSITORY)), " ".join(words), complaint(words))
        for path in TEXTS
        for words in typed(path.read_text(encoding="utf-8"), path.suffix)
    ]
    assert [one for one in found if one[-1]] == []
    assert len(found) > 200


def test_a_wrong_one_is_noticed() -> None:
    for line, wrong in (
        ("`memkit search QUERY --all`", ""), ("    memkit transcript --turn 8b52f4fb   # the original", ""),
        ("`memkit serach x`", "no command serach"),
        ("    $ memkit search x --everything", "no option --everything"),
        ("`memkit search x --mode guess`", "no such value for --mode"),
        ("`memkit service stat`", "no 'stat'"), ("`memkit status now`", "'now' is one too many"),
    ):  # fmt: skip
        assert [complaint(words) for words in typed(line)] == [wrong]
