"""Which facts may replace which others, by their wording."""

from __future__ import annotations

import pytest

from memkit.summarize.facts import contradicts, is_about, may_replace

EMPTY = "The work on the gateway goes on."
MANY = "Lint, tests, and types run in CI with `ruff` and `mypy`."


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # said better
        ("The gateway listens on 443.", "The staging gateway listens on 443, because 80 is taken."),
        ("Tests run with `bin/test`.", "Tests run with `bin/test`, quicker with `--fast`."),
        ("Tests run with `pytest`.", "Tests run with pytest 9."),
        ("The port is 7443.", "The port is still 7443."),
        ("Anna bevorzugt kurze Commits.", "Anna und Ben bevorzugen kurze Commits."),
        # joined
        ("Item-0 is so.", "Item-0 and Item-39 are so."),
        ("Tests run with `bin/test`.", "Tests run with `bin/test` and types are checked with `mypy`."),
        ("Types are checked with `mypy`.", "Tests run with `bin/test` and types are checked with `mypy`."),
        # no longer so
        ("The gateway listens on 443.", "The gateway listened on 443; since 2026-11-21 it is 7443."),
        ("Releases are on Tuesdays.", "Releases were on Tuesdays; since 2026-11-20 they are on Wednesdays."),
        ("Das Gateway lauscht auf 443.", "Das Gateway lauschte bis 2026-11-20 auf 443, jetzt auf 7443."),
        ("La passerelle écoute sur le port 443.", "La passerelle écoutait sur le port 443, puis 7443."),
    ],
)  # fmt: skip
def test_a_fact_replaces_what_it_says_better_joins_or_ends(old: str, new: str) -> None:
    assert may_replace(new, old)
    assert not contradicts(new, old)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The gateway listens on 7443.", "The gateway listens on 7444."),
        (
            "The gateway listens on 7443, because 443 is taken.",
            "The gateway listens on 8443, because the firewall lets it through.",
        ),
        ("The timeout is 30 s.", "The timeout is 60 s."),
        ("The timeout is 400ms.", "The timeout is 500ms."),
        ("Tests run with `pytest`.", "Tests run with `nox`."),
        ("Das Gateway lauscht auf Port 7443.", "Das Gateway lauscht auf Port 7444."),
        ("La passerelle écoute sur le port 7443.", "La passerelle écoute sur le port 7444."),
        ("网关监听 443 端口。", "网关监听 7443 端口。"),
    ],
)
def test_a_fact_replaces_one_with_another_number_or_name(old: str, new: str) -> None:
    assert may_replace(new, old)
    assert contradicts(new, old)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The gateway listens on 7443.", EMPTY),
        ("The gateway listens on 7443, because 443 is taken.", EMPTY),
        (
            "The gateway listens on 7443, because Anna wants it.",
            "The build runs on 9443, because Anna wants it.",
        ),
        ("The gateway is 443.", EMPTY),
        ("The gateway is slow.", EMPTY),
        ("The gateway was moved to `eu-1`.", EMPTY),
        ("The gateway's owner is Anna.", EMPTY),
        ("Das Gateway lauscht auf Port 443.", "Die Arbeit am Gateway geht weiter."),
        ("Die Tests laufen mit `bin/test`.", "Die Arbeit mit den Tests geht weiter."),
        ("La passerelle écoute sur le port 443.", "Le travail sur la passerelle continue."),
        ("测试用 `bin/test` 运行。", "网关的工作还在继续。"),
        # the number or name is of another thing
        ("Anna wants tabs of 4.", "Anna wants reviews within 2 days."),
        ("Anna wants 2 reviews.", "Step 2 of the deployment fails."),
        ("Tests run with `bin/test`.", MANY),
        ("The person prefers tabs.", "The person prefers tea."),
        ("It is so.", "It is so, and all else too."),
        ("443", EMPTY),
    ],
)
def test_a_fact_does_not_replace_another_thing(old: str, new: str) -> None:
    assert not may_replace(new, old)


def test_an_entry_is_about_a_fact_with_half_of_its_words() -> None:
    entry = "2026-11-20.md > Ports?\nThe gateway is on 443. There was soup."
    assert is_about(entry, "The gateway listens on 7443.")
    assert not is_about(entry, "Tests run with `bin/test`.")
    assert not is_about(entry, "7443")
