from __future__ import annotations

import string
import unicodedata
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memkit.errors import ConfigError
from memkit.index import tokens
from memkit.index.tokens import ASKING_WORDS, LONGEST_TERM, Tokenizer
from memkit.subject import STOP_WORDS
from tests.ci import IN_CI, examples

SIZE = 1_000_000 if IN_CI else 150_000
"""The characters of a very long line."""

ENGLISH = Tokenizer()


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        # Identifiers, whole and in parts. Words are stemmed, alone and as parts.
        ("PolicyController", "policycontrol polici control"),
        ("parseHTML5Doc", "parsehtml5doc pars html5 html 5 doc"),
        ("HTTPServer", "httpserver http server"),
        ("ÜberGabe", "übergab über gabe"),
        ("deploy/gateway.yaml", "deploy/gateway.yaml deploy gateway.yaml gateway yaml"),
        ("src\\app.py", "src\\app.py src app.py app py"),
        ("./src/app.py:12", "src/app.py:12 src/app.py src app.py app py 12"),
        ("localhost:7443", "localhost:7443 localhost 7443"),
        ("std::vector", "std::vector std vector"),
        ("snake_case", "snake_case snake case"),
        ("kebab-case", "kebab-case kebab case"),
        ("dotted.names", "dotted.names dot name"),
        ("gateway/gateway.yaml", "gateway/gateway.yaml gateway gateway.yaml yaml"),
        ("__init__", "init"),
        ("_emphasis_", "emphasi"),
        ("python3.11", "python3.11 python 3.11"),
        # Codes.
        ("ERR_404", "err_404 err 404"),
        ("E0502", "e0502"),
        ("CVE-2024-1234", "cve-2024-1234 cve 2024 1234"),
        ("8ad3df7f", "8ad3df7f"),
        # Versions, addresses and numbers.
        ("2.1.197", "2.1.197"),
        ("v2.1", "v2.1 2.1"),
        ("192.168.1.10", "192.168.1.10"),
        ("30ms", "30ms 30 ms"),
        ("1.5GB", "1.5gb 1.5 gb"),
        ("7443", "7443"),
        ("1,500", "1500"),
        ("$1,500,000.", "1500000"),
        ("1,2", "1 2"),
        ("2026-11-20", "2026-11-20 2026 11 20"),
        # Words.
        ("Gateways are listening.", "gateway listen"),
        ("the URLs", "url"),
        ("Straße ﬁle Ｆｕｌｌ", "strass file full"),
        ("हिन्दी", "हिन्दी"),
        ("C", "c"),
        ("", ""),
        ("… — ___ !?", ""),
        # Apostrophes.
        ("what's", ""),
        ("Caroline's Caroline’s", "carolin carolin"),
        ("don't can’t WON'T", ""),
        ("won", "won"),
        ("they're O'Brien", "brien"),
        # Han, hiragana, katakana and hangul.
        ("東京タワー", "東京 京タ タワ ワー"),
        ("犬", "犬"),
        ("Pythonで書く", "python で書 書く"),
        ("한국어 검색", "한국 국어 검색"),
        ("ﾀﾜｰ・東京", "タワ ワー 東京"),
    ],
)
def test_terms(text: str, terms: str) -> None:
    assert ENGLISH.tokenize(text) == terms.split()


def test_a_name_is_found_in_any_spelling() -> None:
    for written, asked in (
        ("PolicyController", "policycontroller"), ("PolicyController", "policies"), ("POLICY_CONTROLLER", "PolicyController"),
        ("deploy/gateway.yaml", "gateway.yaml"), ("see gateway.yaml.", "deploy/gateway.yaml"), ("release v2.1", "2.1"),
        ("1500 users", "1,500"), ("30 ms", "30ms"), ("the `ERR_404`", "err_404"), ("CAFÉ", "cafe\u0301"),
        ("東京タワーに行く", "東京タワー"),
    ):  # fmt: skip
        assert set(ENGLISH.tokenize(written)) & set(ENGLISH.tokenize(asked)), asked
    terms = ENGLISH.tokenize("gateway/gateway/gateway.yaml")  # an identifier counts once in each term
    assert len(terms) == len(set(terms))
    assert ENGLISH.tokenize("gateway gateway").count("gateway") == 2


def test_other_languages_have_their_own_stems_and_keep_all_words(monkeypatch: pytest.MonkeyPatch) -> None:
    german = Tokenizer("german")
    assert german.tokenize("die Häuser") == ["die", "haus"]
    assert Tokenizer("french").tokenize("l'homme continuait") == ["homm", "continu"]
    assert german.tokenize("ParserFehler") == ["parserfehl", "pars", "fehl"]
    assert list(german.question("tell me the port")) == ["tell", "me", "the", "port"]
    with pytest.raises(ConfigError, match=r"'klingon'.*english"):
        Tokenizer("klingon")
    before = ENGLISH.signature
    assert before == Tokenizer().signature != german.signature
    monkeypatch.setattr(tokens, "VERSION", tokens.VERSION + 1)
    assert Tokenizer().signature != before


@pytest.mark.parametrize(
    "line",
    [
        "a" * SIZE, "a/" * (SIZE // 2), "ab.cd-" * (SIZE // 6), "aB" * (SIZE // 2), "A" * SIZE + "a",
        "a'" * (SIZE // 2), "1," * (SIZE // 2), "123," * (SIZE // 4), "_" * SIZE, ":" * SIZE,
        "a" + "\u0300\u0327" * (SIZE // 2), "a" + "\U0001d165\U0001d16d" * (SIZE // 2), "東京タワー" * (SIZE // 5),
    ],
    ids=lambda line: ascii(line[:6]),
)  # fmt: skip
def test_a_very_long_line(line: str) -> None:
    # Quadratic time would be minutes to hours for a megabyte.
    assert all(len(term) <= LONGEST_TERM for term in ENGLISH.tokenize(line))


def test_too_long_a_name_leaves_its_parts() -> None:
    assert ENGLISH.tokenize("x" * LONGEST_TERM) == ["x" * LONGEST_TERM]
    assert ENGLISH.tokenize("x" * (LONGEST_TERM + 1)) == []
    assert set(ENGLISH.tokenize("/".join(["gateway", "yaml"] * 20))) == {"gateway", "yaml"}


def test_threads_share_a_tokenizer() -> None:
    endings = ("ations", "ingly", "iveness", "ities", "fulness", "ically")
    letters = string.ascii_lowercase if IN_CI else "abcd"
    words = [letter + ending for letter in letters for ending in endings]
    texts = [" ".join(f"{word}{other}ing" for word in words) for other in words]
    expected = [Tokenizer().tokenize(text) for text in texts]
    shared = Tokenizer()
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(shared.tokenize, texts)) == expected


@settings(max_examples=examples(100))
@given(st.text())
def test_any_text_gives_folded_terms_and_always_the_same(text: str) -> None:
    terms = ENGLISH.tokenize(text)
    assert terms == Tokenizer().tokenize(text)
    assert terms == ENGLISH.tokenize(unicodedata.normalize("NFKC", text))
    for term in terms:
        assert 0 < len(term) <= LONGEST_TERM
        assert term == unicodedata.normalize("NFKC", term.casefold())
        assert term not in STOP_WORDS["english"] or term != text.casefold()
    assert " " not in (ENGLISH.identifier(text) or "")


WORDS = st.lists(st.text(string.ascii_lowercase, min_size=2, max_size=8), min_size=2, max_size=4)


@settings(max_examples=examples(100))
@given(WORDS, st.sampled_from("./\\:@-_"))
def test_all_parts_of_a_joined_name_are_terms(words: list[str], separator: str) -> None:
    name = separator.join(words)
    terms = ENGLISH.tokenize(name)
    assert terms[0] == name or name in STOP_WORDS["english"]
    for word in words:
        assert set(ENGLISH.tokenize(word)) <= set(terms)


@settings(max_examples=examples(100))
@given(WORDS, st.booleans())
def test_all_humps_of_a_camel_are_terms(words: list[str], starts_upper: bool) -> None:
    humps = [word.capitalize() for word in words]
    if not starts_upper:
        humps[0] = words[0]
    terms = ENGLISH.tokenize("".join(humps))
    for word in ("".join(words), *words):
        assert set(ENGLISH.tokenize(word)) <= set(terms)
        assert ENGLISH.tokenize(word.upper()) == ENGLISH.tokenize(word)


@settings(max_examples=examples(100))
@given(st.lists(st.sampled_from(["Gateway", "ERR_404", "a/b.py", "東京", "1,500", "the", "é"])))
def test_lines_are_independent_of_each_other(lines: list[str]) -> None:
    apart = [term for line in lines for term in ENGLISH.tokenize(line)]
    assert ENGLISH.tokenize("\n".join(lines)) == apart


# Questions


@pytest.mark.parametrize(
    ("question", "terms"),
    [
        ("Remind me what we discussed about the port", "port"),
        ("PLEASE, tell me: which port?", "port"),
        ("Did our chats mention ERR_404?", "err_404 err 404"),
        ("_recall_ «the» port", "port"),
        # Nothing else is left.
        ("Tell me, please!", "tell pleas"),
        ("summary", "summari"),
        # Words and names that only look like them.
        ("How do reminders work?", "remind work"),
        ("the conversion rate", "convers rate"),
        ("the ChatController of chat-server", "chatcontrol chat control chat-server server"),
        ("walk.py", "walk.py walk py"),
        # In any script beside them.
        ("please 東京", "東京"),
        ("", ""),
    ],
)
def test_a_question_is_its_subject(question: str, terms: str) -> None:
    assert list(ENGLISH.question(question)) == terms.split()


@settings(max_examples=examples(100))
@given(st.lists(st.sampled_from(["Gateway", "ERR_404", "a/b.py", "the", *ASKING_WORDS["english"]])))
def test_asking_words_are_dropped_only_with_other_words(words: list[str]) -> None:
    others = [word for word in words if word not in ASKING_WORDS["english"]]
    kept = ENGLISH.tokenize(" ".join(others)) or ENGLISH.tokenize(" ".join(words))
    assert list(ENGLISH.question(" ".join(words))) == list(dict.fromkeys(kept))


def test_the_terms_of_a_name_share_its_weight() -> None:
    weights = ENGLISH.question("port of the ecommerce-api gateway, port 東京")
    part = 3 ** (-2 / 3)
    assert weights == pytest.approx(
        {"port": 2, "ecommerce-api": part, "ecommerc": part, "api": part, "gateway": 1, "東京": 1}
    )
    assert ENGLISH.question("api ecommerce-api")["api"] == pytest.approx(1 + part)


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("PolicyController", "policycontrol"), ("deploy/gateway.yaml", "deploy/gateway.yaml"),
        ("ERR_404", "err_404"), ("`foo()`", "foo"), ("foo.bar()", "foo.bar"), ("\"__init__\"", "init"),
        (" «Größe»\n", "grösse"), ("v2.1", "v2.1"), ("gateways", "gateway"), ("std::vector", "std::vector"),
        ("user@host", "user@host"), ("PolicyController rejects", None), ("a, b", None), ("ERR_404?", None),
        ("東京", None), ("東京tower", None), ("the", None), ("__", None), ("()", None), ("", None),
        ("x" * (LONGEST_TERM + 1), None),
    ],
)  # fmt: skip
def test_an_identifier_alone(text: str, term: str | None) -> None:
    assert ENGLISH.identifier(text) == term


@settings(max_examples=examples(100))
@given(st.from_regex(r"[A-Za-z][A-Za-z0-9]{0,8}([./_-][A-Za-z][A-Za-z0-9]{0,8}){0,3}", fullmatch=True))
def test_a_name_is_found_by_its_whole(name: str) -> None:
    term = ENGLISH.identifier(f"`{name}()`")
    assert term == ENGLISH.identifier(name)
    if term is None:
        assert name.lower() in STOP_WORDS["english"]
    else:
        assert ENGLISH.tokenize(f"{name}, line 3")[0] == term


def test_pairs_are_of_plain_words_that_follow_each_other() -> None:
    question = "Please fix the session-restore of checkpoints"
    assert list(ENGLISH.pairs(question)) == [("pleas", "fix"), ("fix", "session"), ("session", "restor"), ("restor", "checkpoint")]
    # Of another text, only the words that begin as those of the question: others keep their place.
    found = list(ENGLISH.pairs("Fixed: sessions are restored, not the checkpoint", question))
    assert ("session", "restor") in found
    assert ("restor", "checkpoint") in found
    assert ("restor", "checkpoint") not in list(ENGLISH.pairs("restored every checkpoint", question))
