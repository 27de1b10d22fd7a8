"""Outputs of tools, prompts, and files as coding sessions hold them, with secrets and with what only looks like one.

They were written before the rules that they measure. `fit(seed)` has half of the templates, `held(seed)` the
other; a hash of the template decides. The rules were tuned on `fit`. On their first run on `held` they found 77.4 %
of the named secrets and 89.9 % of those in everyday outputs, and touched 3.1 % of the innocent texts. What that run
showed was then repaired, so `held` is not unseen any more: both halves only guard against regressions now.

`terminals_*.txt` is a second corpus, written before its author read the rules. They were tuned on its `fit`. On its
first run on `held`, 82.6 % of the named secrets and 87.8 % of those in everyday outputs were found, and 4.1 % of the
innocent texts touched; now it is 89.1, 89.2, and 2.1 %.

`sessions_*.txt` is a third one, by an author who never read the rules. On its first run, 89.5 and 90.4 % of the named
secrets in its halves were found, 78.7 and 78.9 % of the everyday ones, and 1.1 and 1.5 % of the innocent texts touched.
Then one cause that `fit` showed was repaired, passwords that are a word and a number: `held` is at 90.7, 84.6, and 1.5 %.

`work_*.txt` is a fourth one, by another author who never read the rules. On its first run, 92.2 and 89.7 % of the named
secrets in its halves were found, 66.3 and 60.7 % of the everyday ones, and 2.0 and 1.4 % of the innocent texts touched.
Then the rules were tuned on its `fit`, and sentences were scored instead of matched: 98.9 and 95.3, 98.4 and 80.8, 0 and
0.7 %. Later they were tuned on what `held` showed, too, so it only guards against regressions now.

`notes_*.txt` is the half to tune on of a fifth one, by an author who never read the rules, full of passwords that people
make up. On its first run, 81.7 % of the named secrets were found, 66.7 % of the everyday ones, and 0.6 % of the innocent
texts touched. Then passwords that people make up were judged by what parts they have, in sentences, settings, pairs of a
user and a password, tables, and the results of commands: now they are 99.2, 96.9, and 0 %. In the half that is not here,
82.8 % of the named and 53.1 % of the everyday ones were found before, 86.1 and 72.6 % afterwards, and 0 of 157 innocent
texts touched both times.

The templates are in `outputs_*.txt`, in the notation of `secrets_corpus`. `## ` begins a kind, `--` alone ends
a template. A first line `$$ …` is the command whose result follows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from memkit.conversation.values import redacted_result
from tests.privacy.secrets_corpus import _SECRET, _fill, is_found
from tests.privacy.secrets_made import Maker, Planted

GROUPS = ("named", "everyday", "innocent")
SEEDS = 2
"""Values for each template."""

WHOLE = ("notes",)
"""Corpora of which only the half to tune on is here."""


@dataclass(frozen=True)
class Output:
    """A text, or the result of `command`, with the secrets in it."""

    kind: str
    command: str
    text: str
    secrets: tuple[str, ...]

    def shown(self, redact: Callable[[str], str]) -> str:
        """Return the text as memkit keeps it."""
        return redacted_result(self.command, self.text, redact)

    def found(self, redact: Callable[[str], str]) -> list[bool]:
        """Return for each secret whether it is hidden."""
        shown = self.shown(redact)
        return [is_found(Planted(self.kind, self.text, secret), shown) for secret in self.secrets]


def fit(corpus: str = "outputs", seed: int = 5) -> dict[str, list[Output]]:
    """The half to tune on."""
    return {group: list(_outputs(corpus, group, seed, 0)) for group in GROUPS}


def held(corpus: str = "outputs", seed: int = 5) -> dict[str, list[Output]]:
    """The half that was unseen until the rules had been tuned once."""
    return {group: list(_outputs(corpus, group, seed, 1)) for group in GROUPS}


def _outputs(corpus: str, group: str, seed: int, half: int) -> Iterator[Output]:
    for kind, template in _templates(corpus, group):
        digest = hashlib.sha256(template.encode()).digest()
        if corpus not in WHOLE and digest[0] % 2 != half:
            continue
        for number in range(SEEDS):
            filled = _fill(Maker(int.from_bytes(digest[:6], "big") + seed + number), template)
            secrets = tuple(found[1] for found in _SECRET.finditer(filled))
            command, line_end, text = _SECRET.sub(r"\1", filled).partition("\n")
            if not command.startswith("$$ "):
                command, text = "", command + line_end + text
            yield Output(kind, command.removeprefix("$$ "), text, secrets)


def _templates(corpus: str, group: str) -> Iterator[tuple[str, str]]:
    text = Path(__file__).with_name(f"{corpus}_{group}.txt").read_text(encoding="utf-8")
    for part in text.removeprefix("## ").split("\n## "):
        kind, _, templates = part.partition("\n")
        for template in templates.removesuffix("\n").split("\n--\n"):
            yield kind, template
