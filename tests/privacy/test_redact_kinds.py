"""Secrets of forty kinds are found, what looks like one stays, and no text takes long."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memkit.privacy.redact import redact
from tests.ci import examples, first, only_in_ci, sized
from tests.privacy import secrets_made

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("seed", first(1, [1, 2]))
def test_secrets_are_found(seed: int) -> None:
    planted = secrets_made.secrets(seed, 20 * len(secrets_made.SECRETS))
    missed = Counter()
    for one in planted:
        shown = redact(one.text)
        missed[one.kind] += not secrets_made.is_found(one, shown)
        assert redact(shown) == shown
    assert sum(missed.values()) <= 0.02 * len(planted), missed
    assert max(missed.values()) <= 4, missed  # no kind is left out


@pytest.mark.parametrize("seed", first(1, [1, 2]))
def test_look_alikes_stay(seed: int) -> None:
    texts = secrets_made.look_alikes(seed, 2000)
    changed = [one.text for one in texts if redact(one.text) != one.text]
    assert len(changed) <= 0.01 * len(texts), changed[:10]


def test_all_in_one_text() -> None:
    """Neighbours do not hide each other, and what stands between them stays."""
    planted = [one for one in secrets_made.secrets(3, 420) if one.kind != "private key"]
    shown = redact("\n\nNext one.\n\n".join(one.text for one in planted))
    missed = [one.kind for one in planted if not secrets_made.is_found(one, shown)]
    assert len(missed) <= 0.02 * len(planted), missed
    assert shown.count("Next one.") == len(planted) - 1
    assert redact(shown) == shown


@pytest.mark.parametrize("kind", ["private key", "service account"])
def test_nothing_of_a_key_block_is_left(kind: str) -> None:
    make = secrets_made.Maker(5)
    for _ in range(40):
        text, _ = secrets_made.SECRETS[kind](make)
        shown = redact(f"before\n{text}\nafter")
        assert not re.search(r"[A-Za-z0-9+/]{40}", shown)
        assert shown.startswith("before")
        assert shown.endswith("after") or "-----END" not in text


def test_a_url_keeps_its_user_and_host() -> None:
    make = secrets_made.Maker(6)
    url = f"postgres://app:{make.text(9)}@{make.text(9)}@db.internal:5432/shop"
    assert redact(url) == "postgres://app:[redacted:url-password]@db.internal:5432/shop"


def test_a_clean_text_is_read_again_with_other_patterns() -> None:
    text = "the harbor pilot comes aboard at noon"
    assert redact(text) == redact(text) == text
    assert "harbor" not in redact(text, [re.compile("harbor pilot")])
    assert redact(text) == text


@pytest.mark.parametrize("pattern", [r"\w+", r"\W+", ".+", r"ACME-\d+", "x*", r"(?<=a)b", r"\d", "[^a]"])
def test_own_patterns(pattern: str) -> None:
    own = [re.compile(pattern)]
    key = secrets_made.Maker(7).framed("npm" + "_" + "a1B2" * 9, "use {} of ACME-12 now, ab")[0]
    once = redact(key, own)
    assert "npm_a1" not in once
    assert redact(once, own) == once


def test_an_own_pattern_takes_the_marks_it_covers() -> None:
    key = "npm" + "_" + "a1B2" * 9
    assert redact(f"our {key} is", [re.compile("our .* is")]) == "[redacted:custom]"


pieces = st.sampled_from(
    [piece for one in secrets_made.secrets(8, 200) for piece in (one.text[:30], one.text[-30:], one.secret)]
    + ["=", ": ", '"', "'", "\\", "\n", "-", "@", "password", "token", "key", "//", "[redacted:", "]", "Bearer "]
)  # fmt: skip


@settings(max_examples=examples(120))
@given(parts=st.lists(pieces | st.text(max_size=2), max_size=10))
def test_once_is_enough(parts: list[str]) -> None:
    once = redact("".join(parts))
    assert redact(once) == once


@only_in_ci
@pytest.mark.parametrize("kind", ["text", "code", "base64", "pathological"])
def test_a_long_text_of_any_kind_ends(kind: str) -> None:
    """In a process of its own, so that a search without end fails here and does not hang the suite."""
    command = [
        sys.executable,
        str(REPOSITORY / "benchmarks" / "redaction.py"),
        "--only",
        kind,
        "--bytes",
        sized("100000", "100000", "250000"),  # a search that takes its square would not end
        "--json",
    ]
    done = subprocess.run(command, capture_output=True, timeout=300, check=True, text=True)
    assert kind in done.stdout
