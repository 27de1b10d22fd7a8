"""The wide corpus: the share that is found of each group, and of look-alikes that is touched."""

from __future__ import annotations

import re

import pytest

from memkit.archive.archive import Archive
from memkit.capture.capture import Capture
from memkit.conversation.values import redacted
from memkit.forget.audit import SecretFinder
from memkit.privacy.redact import FINANCIAL, redact, visible
from memkit.settings.load import Settings
from tests.builders import Lines
from tests.capture.stage import Stage, prompt_id
from tests.ci import IN_CI
from tests.privacy import secrets_corpus
from tests.privacy.secrets_made import Maker

GOALS = {"forms": 0.99, "other providers": 0.85, "colored": 0.98, "named": 0.92, "other languages": 0.85}


@pytest.fixture(scope="module", params=["fit", "held"])
def groups(request: pytest.FixtureRequest) -> dict[str, list[secrets_corpus.Planted]]:
    return getattr(secrets_corpus, request.param)(7)  # type: ignore[no-any-return]


@pytest.mark.parametrize("group", GOALS)
def test_secrets_are_found(groups: dict[str, list[secrets_corpus.Planted]], group: str) -> None:
    planted = groups[group]
    missed = [one.text for one in planted if not secrets_corpus.is_found(one, redact(one.text))]
    assert len(missed) <= (1 - GOALS[group]) * len(planted), missed[:20]


def test_look_alikes_stay(groups: dict[str, list[secrets_corpus.Planted]]) -> None:
    texts = [one.text for one in groups["look-alikes"]]
    touched = [text for text in texts if redact(text) != text]
    assert len(touched) <= 0.005 * len(texts), touched


def test_twice_is_as_once(groups: dict[str, list[secrets_corpus.Planted]]) -> None:
    for planted in groups.values():
        for one in planted[:: 3 if IN_CI else 12]:
            once = redact(one.text)
            assert redact(once) == once


TOKEN = "gh" + "p_" + "a1B2" * 9
HIDDEN = ("\x1b[1m", "\x1b[0m", "\x9b31m", "\x00", "\x08", "\x7f", "\x85", "\u200b", "\u2060", "\ufeff", "\u202e", "\xad", "\r", "\x0b", "\u2028",
          "\x1b]0;t\x07", "\x1bP1$r\x1b\\", "\ufe0f", "\u115f")  # fmt: skip


@pytest.mark.parametrize("hidden", HIDDEN)
@pytest.mark.parametrize("place", [0, 2, 4, 9, 38])
def test_invisible_characters_hide_nothing(hidden: str, place: int) -> None:
    shown = redact(f"use {TOKEN[:place]}{hidden}{TOKEN[place:]} now")
    assert "a1B2" not in shown
    assert "use" in shown
    assert "now" in shown


def test_colors_written_out_end_a_word() -> None:
    for before in (r"\x1b[32m", r"\u001b[32m", r"\033[1;32m", "[32m", r"\u003d", "%3D"):
        assert "a1B2" not in redact(before + TOKEN)


def test_text_of_other_scripts_stays() -> None:
    for text in ("👨\u200d👩\u200d👧 ok", "می\u200cخواهم", "क्\u200dष", "❤\ufe0f", "a\tb\r\nc\n", "naïve – “x” …"):
        assert visible(text) == text
        assert redact(text) == text


def test_audit_sees_a_colored_token_and_takes_no_color_for_a_secret() -> None:
    finder = SecretFinder(redact)
    finder.lines_of("journal", "a")(1, "\x1b[32mfine\x1b[0m\nand so on\u200b")
    assert finder.found == []
    finder.lines_of("journal", "a")(1, f"\x1b[32mfine\x1b[0m\nkey \x1b[1m{TOKEN[:8]}\x1b[0m{TOKEN[8:]}")
    assert [(one.line, one.kind) for one in finder.found] == [(2, "github-token")]


def test_no_colored_token_reaches_a_file(stage: Stage) -> None:
    colored = f"\x1b[32m{TOKEN[:9]}\x1b[0m\x1b[1m{TOKEN[9:]}\x1b[0m\nlast line {TOKEN[:4]}\u200b{TOKEN[4:]}"
    lines = Lines().prompt(f"Look: \x1b[31m{TOKEN}", prompt_id(1)).call(f"mcp__{TOKEN}", "a", command=f"echo {colored}")
    stage.write(lines.result("a", colored).answer(f"It is \x1b[1m{TOKEN[:20]}\x00{TOKEN[20:]}."))
    Capture(stage.home, Settings()).import_file(stage.transcript, stage.project)
    archive = Archive(stage.home)
    kept = stage.journal + str([archive.turns(session) for session in archive.sessions()])
    assert "a1B2" not in kept
    assert kept.count("[redacted:github-token]") >= 6


def test_a_pair_of_name_and_value_in_a_tools_input() -> None:
    given = {"env": [{"name": "DB_PASSWORD", "value": "Xk9!mQ2zL7wp"}, {"name": "PORT", "value": "8080"}]}
    shown = redacted(given, redact)
    assert shown["env"][0] == {"name": "DB_PASSWORD", "value": "[redacted:secret]"}
    assert shown["env"][1] == given["env"][1]


def test_card_numbers_and_ibans_are_redacted_if_asked_for() -> None:
    asked = [re.compile(FINANCIAL)]
    text = "card 4111 1111 1111 1111 or 5500-0055-5555-5559, IBAN DE89 3704 0044 0532 0130 00 BIC X, GB82WEST12345698765432"
    assert redact(text) == text
    shown = redact(text, asked)
    assert shown.count("[redacted:financial]") == 4
    assert redact(shown, asked) == shown
    for other in ("4111 1111 1111 1112", "DE88 3704 0044 0532 0130 00", "order 4000000000000", "1700000000000"):
        assert redact(other, asked) == other


def test_passwords_are_not_cut_out_of_code() -> None:
    make = Maker(1)
    for text in (f"name: app\npassword: |\n  {make.password()}\nport: 1", f"a,password,b\n1,{make.key()},2\n"):
        shown = redact(text)
        assert shown.count("[redacted:secret]") == 1
        assert shown.startswith(text.split("\n")[0])
