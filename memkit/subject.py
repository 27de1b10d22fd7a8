"""The words of a text that name its subject: neither function words nor those of any work on code.

Standard library only.
"""

from __future__ import annotations

import functools
import re

_ENGLISH = """
    a about above after again against all also am an and any are as at be because been before being
    below between both but by can could did do does doing down during e.g each few for from further
    had has have having he her here hers herself him himself his how i i.e if in into is it its
    itself just ll me more most my myself no nor not of off on once only or other our ours ourselves
    out over own re same shall she should so some such than that the their theirs them themselves
    then there these they this those through to too under until up ve very was we were what when
    where which while who whom whose why will with would you your yours yourself yourselves
"""

STOP_WORDS = {"english": frozenset(_ENGLISH.split())}
"""Function words to drop, by language; `ll`, `re`, and `ve` are left over from contractions."""

_EVERYWHERE = frozenset(
    """
    add address adjust allow answer apply ask avoid begin bring build call change check choose clean close
    come commit compare complete continue convert copy correct create delete describe do double drop edit end
    ensure explain extract finish fix follow forget format get give go happen help implement improve include
    install keep kill know leave let lint list look make mean merge move need open pick print provide pull
    push put read rebase refactor remember remind remove rename replace rerun reset resolve restart retry
    return revert review rewrite run save say see send set ship show simplify skip sort split start stop
    suggest summarize take talk tell test think tidy touch translate try turn undo use update verify wait walk
    want work write

    approach branch bug bump case changelog code comment computer context conversation day debug dependency
    diff difference directory doc docstring error example explanation fact failure file folder formatter
    function git github idea import issue joke kind line linter master merge message minute moment name number
    option output overview part piece plan poem point pr problem process program project question readme
    reason repo repository request result script sentence session side snippet step story recommendation
    suggestion summary task term text thing time tool type unit version warning way week word year

    again already also anything bad below best better bit both brief carefully clear correctly current
    currently different done early enough else everything exact exactly far fast faster few final first full
    good great hard here instead last later latest left little long main many more morning most much new next
    nice night nothing now old once other own please possible previous properly quick quickly ready really
    right same second several shorter short simple simpler single small something soon still sure there third
    today together tomorrow tonight two well whole wrong yesterday yet

    broken fail hello hey hi likely ok okay pass thanks thank welcome yes yep no
    """.split()
)
"""Words of no subject, in their base form."""

_ENDINGS = ("ing", "ies", "ied", "ed", "es", "s", "d")
_LONGEST = 80  # the cache keeps what it is asked for
_AROUND = ".,;:!?…()[]{}\"'`“”‘’*"
_NUMBERS = re.compile(r"[\W_]*(?:\d{1,2}[\W_]+)*(?:\d{1,2})?")


def subject_of(prompt: str) -> str:
    """Return the words of `prompt` that name its subject, in order: whole names, but no short numbers."""
    return " ".join(word for word in prompt.split() if not _is_everywhere(word[:_LONGEST]))


@functools.lru_cache(20_000)
def _is_everywhere(word: str) -> bool:
    bare = word.strip(_AROUND).lower()
    if not bare or _NUMBERS.fullmatch(bare) or bare in _EVERYWHERE:
        return True
    for ending in _ENDINGS:
        if bare.endswith(ending):
            stem = bare[: -len(ending)]
            bases = {stem, f"{stem}e", f"{stem}y", stem[:-1] if stem[-2:-1] == stem[-1:] else stem}
            if not bases.isdisjoint(_EVERYWHERE):
                return True
    return False
