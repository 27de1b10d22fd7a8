"""Secrets in the shapes real text gives them; no key is written down here, each is made when it runs."""

from __future__ import annotations

import base64
import random
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memkit.privacy.redact import redact
from tests.ci import IN_CI, examples

choice = random.Random(3)


def made(count: int, alphabet: str = string.ascii_letters + string.digits) -> str:
    return "".join(choice.choice(alphabet) for _ in range(count - 2)) + "7Q"


@pytest.mark.parametrize(
    "frame",
    [
        "api_key := {}",
        'api_key := "{}"',
        '{{\\"password\\": \\"{}\\"}}',
        "{{\\'token\\': \\'{}\\'}}",
        "password = '{}'",
        "DB_PASSWORD={}\nNEXT=1",
        "  secret_key: {}",
        "--auth-token={}",
        "authToken: '{}',",
        "AccessKey => {}",
        "curl -H 'Authorization: Bearer {}' https://example.com",
        "authorization: bearer {}",
        "redis://:{}@cache:6379/0",
        "https://user:{}@example.com/a.git",
    ],
)
def test_a_secret_is_found_in_its_frame_and_the_frame_stays(frame: str) -> None:
    for length in (20, 64, 199, 200, 201, 5000):
        if "://" in frame and length > 200:
            continue
        value = made(length)
        shown = redact(frame.format(value))
        assert value[-6:] not in shown
        assert value[:6] not in shown
        assert shown.count("[redacted:") == 1
        assert redact(shown) == shown
        before, after = frame.format("\0").split("\0")
        assert shown.endswith(after) or "://" in frame
        assert shown.startswith(before[: before.find("://")] if "://" in before else before)


def test_a_private_key_is_hidden_to_its_end() -> None:
    begin, end = "-----BEGIN OPENSSH PRIVATE " + "KEY-----", "-----END OPENSSH PRIVATE " + "KEY-----"
    body = "\n".join(made(64, string.ascii_letters + "+/") for _ in range(30))
    for text, kept in [
        (f"a\n{begin}\n{body}\n{end}\nb", "a\n[redacted:private-key]\nb"),
        (f"a\n{begin}\n{body}", "a\n[redacted:private-key]"),
        (f'{{"key": "{begin}\\n{made(64)}\\n{end}\\n"}}', '{"key": "[redacted:private-key]\\n"}'),
        (f"{begin}\n{body}\n(the rest was cut)" + " and more." * 4000, None),
    ]:
        shown = redact(text)
        assert body[:40] not in shown
        assert body[-40:] not in shown
        if kept is not None:
            assert shown == kept
    assert redact(f"it begins with `{begin}`, then") == "it begins with `[redacted:private-key]`, then"


@pytest.mark.parametrize(
    "text",
    [
        "const secretName = config.secretName",
        "if (tokenProvider.isExpired()) refresh()",
        "the password is stored hashed",
        "https://example.com:8080/path?x=1@2",
        "sk-learn and sk_test_helper are names",
        "tokenizers==0.21.4.dev0",
        "tiktoken==0.12.0rc1",
        "tokenizer: bert-base-uncased-v2",
        "input_tokens=1234567890, output_tokens: 98765432",
        "token_url: https://oauth2.example.com/v1/token",
        "password = getpass.getpass2('again')",
        "token = base64.b64encode(data)",
        "secret_file: ./deploy/secret-2.yaml",
        "if token == other_token2:",
        "use crate::token::Kind8Parser;",
        "GITHUB_TOKEN: ${{ secrets.GITHUB_TOKEN }}",
        "password: ********",
        "password: xxxxxxxxxxxx",
        'const token = useToken2()',
        "the bearer of-these-letters-and-nothing-else",
        "class Token2: pass",
        "See https://example.com/a:b/c@2x.png",
        "git@github.com:team/app.git and ssh://git@host:22/x",
        "max_tokens: 4096, stop_token: </s>",
        "passwords:\n  - none",
        "arn:aws:secretsmanager:us-east-1:123456789012:secret:prod/db2-AbCdEf",
        'password = ask_password("Password: ")',
        'HEADERS = ("authorization", "x-amz-content-sha256")',
        "the token: `get_token2()` refreshes it",
        "    --- PASS: TestTokenRefresh/expired_2 (0.00s)",
        "bypass: rule-2024-a1 matched",
        "Session: 2026-01-22-0bdbfa06-acf1-473a-b3e4-6a03313d1d0e",
        "existingSecret: shop-db-2024",
        "client = Client(api_key=API_KEY_V2, base_url=url)",
        "If all pass → `spawnDetachedApply(repoRoot)`",
        'login lea, "etag": "Xk3vQ8zT1mB7yR2n"',
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert redact(text) == text


secrets = st.sampled_from(
    ["token=", 'password: "', "ghp_" + "aB3" * 12, "sk-" + "Zz9" * 12, "AKIA" + "A1B2" * 4, "Bearer ", "://u:p@h",
     "<private>", "</private>", "a1b2c3d4e5", "=", ":", '"', "\\", " ", "\n", "[redacted:", "]", "(", "eyJabcdefgh.", "x" * 9]
)  # fmt: skip


@settings(max_examples=examples(150))
@given(parts=st.lists(secrets | st.text(max_size=3), max_size=12))
def test_once_is_enough(parts: list[str]) -> None:
    once = redact("".join(parts))
    assert redact(once) == once


@pytest.mark.parametrize(
    "unit",
    ["-----BEGIN PRIVATE " + "KEY-----", "a.", "a-", "token=", 'token="', "token: ", "://a:b", "sk-", "eyJaaaaaaaa.",
     "<private>", "Bearer ", "password=\\", "_" * 30 + "token", "&password=a", "password," + "abc.def(" * 9 + ' "Ab3xY9kL" '],
)  # fmt: skip
def test_a_million_characters_in_one_go(unit: str) -> None:
    """Each of these took a quadratic search minutes; a linear one is through in about a second."""
    assert redact(unit * ((1_000_000 if IN_CI else 100_000) // len(unit)))


@pytest.mark.parametrize(
    "text",
    [
        "     1\tdb:\n     2\t  password: |\n     3\t    {}\n",
        "    12→password:\n    13→  {}\n",
        "+password: >-\n+  {}\n",
        "12:password: |\n13:  {}",
        "$ENV{{DB_PASSWORD}} = '{}';",
        "$ENV{{'DB_PASSWORD'}} = '{}';",
    ],
)
def test_a_value_on_the_next_line_of_a_numbered_file_or_a_diff(text: str) -> None:
    """Claude reads files with the numbers of their lines."""
    value = "Xk9$mP2vLq8zR4"
    assert value not in redact(text.format(value))


@pytest.mark.parametrize("at", [14, 17, 43, 44, 45, 46, 62, 63])
def test_the_base64_of_a_key_block_may_be_cut_into_lines(at: int) -> None:
    block = f"-----BEGIN RSA PRIVATE KEY-----\n{made(200)}"
    text = base64.b64encode(block.encode()).decode().rstrip("=")
    certificate = base64.b64encode(b"-----BEGIN CERTIFICATE-----" * 4).decode().rstrip("=")
    for sign in ("\\n", "\\"):
        assert redact(f"data: {text[:at]}{sign}{text[at:]}") == "data: [redacted:private-key]"
        assert "private-key" not in redact(f"data: {certificate[:at]}{sign}{certificate[at:]}")
