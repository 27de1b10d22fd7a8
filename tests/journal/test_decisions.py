"""A decision is what the user chose, resolved from what the answer before offered."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memkit.journal.decisions import decisions

PORTS = "7443 keeps the TLS convention, 7444 is what the old gateway used. Which one?"
LIST = "Three ways:\n1. mock the clock\n2. poll for 5 s\n3. move it to the nightly suite\nI lean to the second one."


@pytest.mark.parametrize(
    ("before", "prompt", "line"),
    [
        (PORTS, "Take 7443.", "Take 7443. (7443 keeps the TLS convention)"),
        ("Float with rounding, or Decimal?", "go with Decimal", "go with Decimal (Float with rounding, or Decimal?)"),
        (LIST, "the second one", "poll for 5 s"),
        (LIST, "let's do the first one, but for 60 s", "mock the clock (let's do the first one, but for 60 s)"),
        ("A) stream CSV\nB) write a Parquet file\nB scales better.", "B please", "write a Parquet file"),
        ("Catch it in the form, or with a unique index?", "both", "both: Catch it in the form, or with a unique index?"),
        ("I chose zod over yup for its types. Done.", "ok, good", "I chose zod over yup for its types."),
        ("I suggest a grace period of 14 days.", "yes", "A grace period of 14 days."),
        ("Reichen zwei Reviews, oder drei?", "Ja: zwei Reviews reichen", "Ja: zwei Reviews reichen (Reichen zwei Reviews, oder drei?)"),
        ("I'd rename `acct` to `accounts`.", "no, keep the old name", "no, keep the old name (I'd rename `acct` to `accounts`.)"),
        ("Redis or Postgres?", "Let's go with this:\n\nUse Postgres instead of MySQL.", "Use Postgres instead of MySQL. (Redis or Postgres?)"),
        ("Rust or C?", "rust. nobody wants to debug c", "rust. nobody wants to debug c (Rust or C?)"),
        ("I propose an hour for the cache.", "good, half an hour for guests", "good, half an hour for guests (An hour for the cache.)"),
        ("Plan: (a) gzip it, (b) drop the field.", "b, it is never read", "drop the field. (b, it is never read)"),
        ("We can drop the index or rebuild it at night.", "the latter", "rebuild it at night."),
        ("Who rotates the keys?", "nadia does that, not us", "nadia does that, not us (Who rotates the keys?)"),
        ("I logged the cookie too.", "cookies never go into a log", "cookies never go into a log"),
        ("Ich habe XML ergänzt.", "kein xml, überall nur json", "kein xml, überall nur json"),
        ("J'ai mis 5 s.", "mets 20 s par défaut", "mets 20 s par défaut"),
        ("Puedo añadir un panel.", "el panel lo dejamos para la v2", "el panel lo dejamos para la v2"),
        ("保存先は S3 と GCS のどちらですか。", "S3にします", "S3にします (保存先は S3 と GCS のどちらですか。)"),
        ("I'd use NATS for the queue. Shall I?", "ok, kafka was slow", "ok, kafka was slow (I'd use NATS for the queue.)"),
        ("1. Mustache 2. Handlebars", "2, it has helpers", "Handlebars (2, it has helpers)"),
        ("A) trim the logs\nB) move them\nC) gzip them", "A and C", "trim the logs; gzip them"),
        ("The lease lasts 30 s.", "make it 45", "make it 45 (The lease lasts 30 s.)"),
        ("Lua or Wasm?", "lua, but keep it small, can you list the calls?", "lua, but keep it small (Lua or Wasm?)"),
        ("It is pushed.", "from now on open a PR. They run the checks.", "from now on open a PR. They run the checks."),
    ],
)  # fmt: skip
def test_what_was_chosen(before: str, prompt: str, line: str) -> None:
    assert decisions(prompt, before) == [line]


@pytest.mark.parametrize(
    ("before", "prompt"),
    [
        (LIST, "which of them is the fastest?"),
        (LIST, "let me think about it, I'll decide tomorrow"),
        ("I suggest to split the module. Shall I?", "the login page is broken on Safari, look at that"),
        ("Shall I run the tests?", "yes"),
        ("It would be safer. Shall I make that change?", "yes"),
        ("A lock, or a queue?", "both? or is that slow"),
        ("Which host is slow?", "the second one, since friday"),
        ("The lease lasts 30 s.", "feels too slow on my laptop"),
        ("The build takes 4 minutes now.", "ok"),
        ("Why is there no lock?", "This is safe because the map is only written in init()"),
        ("The parser fails on line 30.", "the parser still fails on newlines"),
        ("Which PR should I review?", "181"),
        ("I'd profile the decoder first.", "use the profiler to see where it waits"),
        ("We could use Redis or Postgres.", "maybe redis, not sure yet"),
        ("The default is 10 ms.", "where does the default come from"),
        ("I fixed the retry.", "still hangs after the third one"),
        ("Which shell do you use?", "zsh, since last year"),
        ("Soll ich weitermachen?", "ja bitte"),
        ("El índice está listo.", "mira si la consulta lo usa"),
        ("キューを追加しました。", "動かして結果を教えて"),
        ("The helper is in common.go.", "yep let's refactor. thanks"),
        ("Done.", "The hook stops.\n\nTo use the other one instead, run: x -r 0276a600-2f22-4d2b-844c-3feb9c5aa108"),
        ("Done.", "CI fails:\n\n" + "only new issues on the first run are shown, never old ones\n" * 6),
        ("Done.", "why this?\nwarning: we never keep the port\nand always use 443"),
    ],
)  # fmt: skip
def test_what_is_not_decided(before: str, prompt: str) -> None:
    assert decisions(prompt, before) == []


@given(st.text(), st.text())
def test_any_text_is_read(before: str, prompt: str) -> None:
    assert all(isinstance(one, str) for one in decisions(prompt, before))


@pytest.mark.parametrize("part", ["ok, ", "1. a\n", "the first ", "for it we ", "use a ", "`a` ", "- x, or y? "])
def test_long_text_takes_linear_time(part: str) -> None:
    decisions(part * 20_000, part * 20_000)  # a pattern that backtracks takes hours
