"""Takes the facts of one memory file over into another's section."""

from __future__ import annotations

from memkit import anchors
from memkit.journal.facts import FactChange, FactFile
from memkit.privacy.tombstones import Forgotten


def remembered_text(text: str, name: str, forgotten: Forgotten) -> str:
    """The text of the file `name` without the facts that are forgotten."""
    file = FactFile(text, name)
    gone = set()
    for _, one in file.everywhere():
        cited = one.fact.citations
        if forgotten.covers_fact(one.id, cited.turns, cited.grips):
            gone.add(one.id)
    return file.render() if file.forget(gone) else text


def taken_facts(own: str, other: str, name: str) -> tuple[FactChange, str]:
    """The change that adds the facts of `other` to the file `name`, which reads `own`; and `other` without.

    A fact that a person edited is text of theirs, and stays in `other`. Where both were condensed, what
    one of them has not condensed yet is still to be. The rest is "" if it says nothing.
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
    """Whether every line of `rest` that is not blank stands in `own`."""
    return {line.strip() for line in rest.split("\n")} <= {"", *map(str.strip, own.split("\n"))}
