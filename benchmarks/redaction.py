"""Measure how many secrets redaction finds, how many look-alikes it touches, and how fast it is.

    python benchmarks/redaction.py [--seed N] [--only text|code|base64|pathological|found|corpus]
                                   [--bytes N] [--json]

The tests' generators make the secrets at run time. The limits: 98 % of the secrets found, at most 1 % of the
look-alikes touched, 1 MB of text or code in at most 1 s.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(REPOSITORY)]

from memkit.privacy.redact import redact  # noqa: E402
from tests.privacy import secrets_corpus, secrets_made  # noqa: E402

MEGABYTE = 1_000_000

KINDS = ("text", "code", "base64", "pathological")
SECRETS = 2100
LOOK_ALIKES = 2200
_BEGIN, _END = "-----BEGIN PRIVATE " + "KEY-----", "-----END PRIVATE " + "KEY-----"
PATHOLOGICAL = (
    _BEGIN,
    _END,
    "A" * 70 + "\n" + _END,
    _BEGIN + "\n> 1:\t",
    "a.",
    "a-",
    "token=",
    'token="',
    "token: ",
    "pwd=",
    "://a:b",
    "sk-",
    "eyJaaaaaaaa.",
    "-eyJaaaaaaaa",
    "<private>",
    "Bearer ",
    "password=\\",
    "_" * 30 + "token",
    "mysql ",
    "curl -u a:",
    "password a1!",
    "SG.",
    "1:AA",
    "--password ",
    "[redacted:",
    "-----",
    "\x1b[",
    "\x1b]",
    "\u200ba",
    "é\u200b",
    "\u200b",
    "\ufe0f",
    "\xad",
    "a\r",
    "x\x08",
    "cookie: ",
    "Cookie: a=b; ",
    "echo a1b2c3d4 ",
    "-p ",
    "|password|\n",
    "password,a\n",
    "<th>password</th>",
    "token</td><td>",
    "insert into a (password) values ('x'),",
    "name: token\nvalue: ",
    "token: |\n  ",
    "key is Ab3xY9kL",
    "密码",
    "seed phrase a ",
    "_aB3",
    "LS0tLS1CRUdJTi",
    "Private-Lines: 1\nAAAA\n",
    "<private a=b",
)
"""Texts on which a backtracking or quadratic search would never finish."""


def texts(seed: int, size: int) -> dict[str, list[str]]:
    """Return texts of `size` characters by kind. Every hundredth line holds a secret."""
    make = secrets_made.Maker(seed)
    prose = [f"{make.words(' ', 12).capitalize()}." for _ in range(12_000)]
    prose[::100] = [one.text for one in secrets_made.secrets(seed, len(prose[::100]))]
    sources = sorted((REPOSITORY / "memkit").rglob("*.py"))
    # An unclosed tag would hide the rest.
    code = "\n".join(path.read_text(encoding="utf-8") for path in sources).replace("<private>", "")
    return {
        "text": [_filled("\n".join(prose), size)],
        "code": [_filled(code, size)],
        "base64": [make.base64(size * 3 // 4), make.text(size, secrets_made.HEX)],
        "pathological": [_filled(unit, size) for unit in PATHOLOGICAL],
    }


def _filled(text: str, size: int) -> str:
    return (text * (size // len(text) + 1))[:size]


def speed(kind: str, seed: int, size: int) -> dict[str, float]:
    """Return megabytes per second over all texts of a kind, and for the slowest of them."""
    seconds, megabytes = [], size / MEGABYTE
    for text in texts(seed, size)[kind]:
        started = time.perf_counter()
        redact(text)
        seconds.append(time.perf_counter() - started)
    return {"mb_per_second": len(seconds) * megabytes / sum(seconds), "slowest": megabytes / max(seconds)}


def found(seed: int) -> dict[str, Any]:
    """Return the share found of each kind of secret, and touched of each kind of look-alike."""
    secrets = secrets_made.secrets(seed, SECRETS)
    alike = secrets_made.look_alikes(seed, LOOK_ALIKES)
    hits = [one.kind for one in secrets if secrets_made.is_found(one, redact(one.text))]
    touched = [one.kind for one in alike if redact(one.text) != one.text]
    return {
        "recall": len(hits) / len(secrets),
        "false_positives": len(touched) / len(alike),
        "found": _shares(hits, [one.kind for one in secrets]),
        "touched": _shares(touched, [one.kind for one in alike]),
    }


def corpus(seed: int) -> dict[str, float]:
    """Return the share found or touched of each group in the half of the corpus that was not used for
    tuning.
    """
    shares = {}
    for group, planted in secrets_corpus.held(seed).items():
        shown = [redact(one.text) for one in planted]
        pairs = list(zip(planted, shown, strict=True))
        if group == "look-alikes":
            shares[group] = sum(one.text != text for one, text in pairs) / len(planted)
        else:
            shares[group] = sum(secrets_corpus.is_found(one, text) for one, text in pairs) / len(planted)
    return shares


def _shares(kinds: list[str], of: list[str]) -> dict[str, float]:
    counts = Counter(kinds)
    return {kind: counts[kind] / total for kind, total in Counter(of).items()}


def main() -> None:
    measure = {"found": found, "corpus": corpus}
    parser = argparse.ArgumentParser(description="Measure what redaction finds and how fast it is.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=[*KINDS, *measure])
    parser.add_argument("--bytes", type=int, default=MEGABYTE, help="size of each text")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    kinds = [arguments.only] if arguments.only else [*KINDS, *measure]
    figures: dict[str, Any] = {
        kind: measure[kind](arguments.seed)
        if kind in measure
        else speed(kind, arguments.seed, arguments.bytes)
        for kind in kinds
    }
    if arguments.json:
        print(json.dumps(figures, indent=1))
        return
    for kind, values in figures.items():
        if kind == "found":
            print(f"found {values['recall']:.2%}, touched {values['false_positives']:.2%}")
            for name, share in [*values["found"].items(), *values["touched"].items()]:
                print(f"  {name:16} {share:8.1%}")
        elif kind == "corpus":
            for group, share in values.items():
                print(f"corpus: {group:16} {share:8.2%}")
        else:
            print(f"{kind:16} {values['mb_per_second']:6.2f} MB/s, slowest {values['slowest']:.2f}")


if __name__ == "__main__":
    main()
