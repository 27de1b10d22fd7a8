"""Move the facts of one memory file into another file's section."""

from __future__ import annotations

from memkit import anchors
from memkit.journal.facts import FactChange, FactFile
from memkit.privacy.tombstones import Forgotten


def remembered_text(text: str, name: str, forgotten: Forgotten) -> str:
    """Return the text of the file `name` without forgotten facts."""
    file = FactFile(text, name)
    gone = set()
    for _, one in file.everywhere():
        cited = one.fact.citations
        if forgotten.covers_fact(one.id, cited.turns, cited.grips):
            gone.add(one.id)
    return file.render() if file.forget(gone) else text


def taken_facts(own: str, other: str, name: str) -> tuple[FactChange, str]:
    """Return the change that adds the facts of `other` to the file `name`, which reads `own`, and the rest
    of `other`.

    A fact that the user edited is their text and stays in `other`. The earlier `compacted` day wins, so that
    nothing is left uncondensed. The rest is "" if it holds no text.
    """
    file, target = FactFile(other, name), FactFile(own, name)
    facts = [one.fact for one in file.facts() if not one.is_own]
    present = {one.id for _, one in target.everywhere()}
    days = [target.compacted, file.compacted]
    added = tuple(fact for fact in facts if fact.id not in present)
    file.remove(fact.id for fact in facts)
    if not file.facts():
        file.lines = [line for line in file.lines if "compacted" not in anchors.parse(line)]
    says_something = any(line.strip() and not line.startswith("# ") for line in file.lines)
    change = FactChange(frozenset(), added, min(days) if all(days) else "")
    return change, file.render() if says_something else ""


def holds_lines(own: str, rest: str) -> bool:
    """Return whether every non-blank line of `rest` is in `own`."""
    return {line.strip() for line in rest.split("\n")} <= {"", *map(str.strip, own.split("\n"))}
