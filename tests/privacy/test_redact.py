"""Secrets go, look-alikes stay. The secrets are made here, none is written down."""

from __future__ import annotations

import base64
import hashlib
import random
import string
import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memkit.privacy.redact import redact, without_private
from tests.ci import examples

choice = random.Random(11)


def letters(count: int, alphabet: str = string.ascii_letters + string.digits) -> str:
    return "".join(choice.choice(alphabet) for _ in range(count))


KEYS = {
    "anthropic-key": lambda: "sk-ant-" + "api03-" + letters(90),
    "openai-key": lambda: "sk-" + "proj-" + letters(60),
    "aws-key": lambda: "AKIA" + letters(16, string.ascii_uppercase + string.digits),
    "google-key": lambda: "AIza" + letters(35),
    "github-token": lambda: "gh" + "p_" + letters(36),
    "gitlab-token": lambda: "glpat" + "-" + letters(20),
    "slack-token": lambda: "xoxb" + "-" + letters(12, string.digits) + "-" + letters(24),
    "stripe-key": lambda: "sk_" + "live_" + letters(24),
    "memkit-key": lambda: "memkit_" + "key_" + letters(43),
    "npm-token": lambda: "npm" + "_" + letters(36),
    "pypi-token": lambda: "pypi" + "-" + letters(80),
    "jwt": lambda: ".".join(["eyJ" + letters(20), "eyJ" + letters(40), letters(43)]),
    "url-password": lambda: f"app:{letters(16)}",
    "private-key": lambda: (
        "-----BEGIN RSA PRIVATE "
        + "KEY-----\n"
        + letters(400)
        + "\n-----END RSA PRIVATE "
        + "KEY-----"
    ),
}


@pytest.mark.parametrize("kind", KEYS)
def test_key_formats(kind: str) -> None:
    frames = ["{}", "the key is {}, keep it", 'KEY="{}"', "(see {})", "x: {}\nnext"]
    if kind == "url-password":
        frames = ["postgres://{}@db.internal:5432/shop", "redis://{}@localhost"]
    for frame in frames:
        for _ in range(5):
            key = KEYS[kind]()
            shown = redact(frame.format(key))
            assert key not in shown
            assert "[redacted:" in shown
            assert redact(shown) == shown


@pytest.mark.parametrize(
    "name", ["DB_PASSWORD", "api_key", "clientSecret", "auth-token", "AWS_SECRET_ACCESS_KEY"]
)
def test_secret_assignments(name: str) -> None:
    for frame in ("{}={}", '{}: "{}"', "'{}' => '{}'", "export {}={}"):
        value = letters(23) + "7"
        assert value not in redact(frame.format(name, value))


def look_alikes() -> list[str]:
    noise = bytes(choice.randrange(256) for _ in range(60))
    return [
        hashlib.sha1(noise).hexdigest(),
        hashlib.sha256(noise).hexdigest(),
        f"sha512-{base64.b64encode(hashlib.sha512(noise).digest()).decode()}",
        str(uuid.UUID(int=choice.getrandbits(128))),
        f"data:image/png;base64,{base64.b64encode(noise * 4).decode()}",
        "token = get_token(request)",
        "password: str",
        "max_tokens: 4096",
        "const secretName = config.secretName",
        "if (tokenProvider.isExpired()) refresh()",
        "the password is stored hashed",
        "https://example.com:8080/path?x=1@2",
        "sk-learn and sk_test_helper are names",
        "git@github.com:team/app.git",
        f"commit {letters(40, '0123456789abcdef')}",
    ]


def test_look_alikes_stay() -> None:
    for _ in range(40):
        for text in look_alikes():
            assert redact(text) == text


def test_private_parts_are_cut_out_of_what_was_typed_alone() -> None:
    assert without_private("a <PRIVATE>b <private>c</private> d</Private> e") == "a [redacted:private] e"
    assert without_private("a <private>b\nc") == "a [redacted:private]"
    assert redact("a <private>b</private> c") == "a <private>b</private> c"


@settings(max_examples=examples(100))
@given(st.text())
def test_redacting_twice_is_redacting_once(text: str) -> None:
    once = redact(text)
    assert redact(once) == once
