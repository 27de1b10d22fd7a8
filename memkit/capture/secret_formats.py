"""Secrets that are known by their own form: a provider's prefix, a key block, a URL, a header.

Each form names literals of which one must stand in the text, so that text without any costs a few
searches for strings, and no regular expression is compiled that is not needed: hooks start often.

Standard library only, Python 3.9 syntax: the hooks import this module.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Callable, Match, NamedTuple, Pattern, Tuple

MAX_KEY_BLOCK = 20_000
"""Characters of the longest private key block; an RSA key of 16,384 bits has 13,000."""


SHORTEST_KEY_LINE = 16
"""Characters by which a line of a key, but the last, is told from a word."""


class Prefixed(NamedTuple):
    """A token of `kind` that begins with one of `prefixes`; `rest` takes all of it that follows."""

    kind: str
    prefixes: Tuple[str, ...]
    rest: str


# Behind the first character of what no run of such characters may come before, lest the search become
# quadratic; `\n` in quoted text and the `-` of a diff end a run.
_ALONE = r"(?:(?<![\w-].)|(?<=\\[nrt].)|(?<=^-.))"

# As documented by each provider. What follows a prefix is taken as far as it goes, so that nothing of
# a key that has become longer is left, and the search is linear.
_PREFIXED = (
    Prefixed("anthropic-key", ("sk-ant-",), r"[\w-]{16,}"),
    Prefixed(
        "openai-key",
        ("sk-",),
        r"(?:(?:proj|svcacct|admin|None|service)-(?=[\w-]{0,60}\d)[\w-]{20,}|[A-Za-z0-9]{32,})",
    ),
    Prefixed("openrouter-key", ("sk-or-",), r"[\w-]{30,}"),
    # With the secret beside it, as in the console's CSV file.
    Prefixed(
        "aws-key",
        ("AKIA", "ASIA", "ABIA", "ACCA"),
        r"[A-Z0-9]{16}(?![A-Za-z0-9])(?:[\s,:;|\"']{1,4}[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=]))?",
    ),
    Prefixed("google-key", ("AIza",), r"[\w-]{35,}"),
    Prefixed("google-key", ("GOCSPX-", "ya29."), r"[\w-]{20,}"),
    Prefixed("google-key", ("1//0",), r"[\w-]{40,}"),
    Prefixed("github-token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"[A-Za-z0-9]{36,}"),
    Prefixed("github-token", ("github_pat_",), r"\w{40,}"),
    Prefixed("gitlab-token", ("glpat-", "gldt-", "glrt-", "glrtr-"), r"[\w.-]{19,}[\w-]"),
    Prefixed(
        "gitlab-token",
        ("glptt-", "glcbt-", "glsoat-", "glft-", "glimt-", "glagent-", "gloas-", "glffct-"),
        r"[\w-]{20,}",
    ),
    Prefixed("slack-token", ("xoxe.xox", "xox"), r"[abceoprs]-[A-Za-z0-9-]{10,}"),
    Prefixed("slack-token", ("xapp-",), r"\d-[A-Za-z0-9-]{10,}"),
    Prefixed("slack-webhook", ("https://hooks.slack.com/",), r"[a-z]{4,12}/[A-Za-z0-9/]{20,}"),
    Prefixed("stripe-key", ("sk_live_", "sk_test_", "rk_live_", "rk_test_"), r"[A-Za-z0-9]{16,}"),
    Prefixed("stripe-key", ("whsec_",), r"[A-Za-z0-9+/]{24,}={0,2}"),
    Prefixed("npm-token", ("npm_",), r"[A-Za-z0-9]{36,}"),
    Prefixed("pypi-token", ("pypi-",), r"[\w-]{50,}"),
    Prefixed("huggingface-token", ("hf_", "api_org_"), r"[A-Za-z0-9]{30,}"),
    Prefixed("sendgrid-key", ("SG.",), r"[\w-]{16,}\.[\w-]{16,}"),
    Prefixed("twilio-key", ("SK",), r"[0-9a-f]{32}(?![A-Za-z0-9])"),
    Prefixed("mailgun-key", ("key-",), r"[0-9a-f]{32}(?![A-Za-z0-9])"),
    Prefixed("digitalocean-token", ("dop_v1_", "doo_v1_", "dor_v1_"), r"[0-9a-f]{60,}"),
    Prefixed(
        "discord-webhook",
        ("https://discord.com/api/", "https://discordapp.com/api/"),
        r"(?:v\d{1,2}/)?webhooks/\d{15,22}/[\w-]{50,}",
    ),
    Prefixed("databricks-token", ("dapi",), r"[0-9a-f]{32}(?![A-Za-z0-9])(?:-\d)?"),
    Prefixed("vault-token", ("hvs.", "hvb.", "hvr."), r"[\w-]{20,}"),
    Prefixed("doppler-token", ("dp.",), r"[a-z]{2,5}\.(?:[\w-]{1,40}\.)?[A-Za-z0-9]{40,}"),
    Prefixed("linear-key", ("lin_api_", "lin_oauth_"), r"[A-Za-z0-9]{32,}"),
    Prefixed("notion-token", ("secret_",), r"[A-Za-z0-9]{43,}"),
    Prefixed("notion-token", ("ntn_",), r"[A-Za-z0-9]{40,}"),
    Prefixed("sentry-token", ("sntryu_", "sntrys_"), r"[A-Za-z0-9+/=_-]{40,}"),
    Prefixed("shopify-token", ("shpat_", "shpca_", "shppa_", "shpss_"), r"[A-Fa-f0-9]{32,}"),
    Prefixed("model-key", ("gsk_", "xai-", "pplx-", "r8_"), r"[A-Za-z0-9]{37,}"),
    Prefixed("figma-token", ("figd_", "figo_"), r"[\w-]{36,}"),
    Prefixed("grafana-token", ("glsa_", "glc_"), r"\w{32,}={0,2}"),
    Prefixed("atlassian-token", ("ATATT3x", "ATCTT3x", "ATBB"), r"[\w=-]{28,}"),
    Prefixed("newrelic-key", ("NRAK-", "NRJS-", "NRII-"), r"[\w-]{19,}"),
    Prefixed("docker-token", ("dckr_pat_", "dckr_oat_"), r"[\w-]{24,}"),
    Prefixed("tailscale-key", ("tskey-",), r"[a-z]{2,10}-[\w-]{20,}"),
    Prefixed("supabase-token", ("sbp_",), r"[A-Za-z0-9]{36,}"),
    Prefixed("postman-key", ("PMAK-",), r"[\w-]{40,}"),
    Prefixed("age-key", ("AGE-SECRET-KEY-1",), r"[A-Z0-9]{50,}"),
    Prefixed("rubygems-key", ("rubygems_",), r"[0-9a-f]{40,}"),
    Prefixed("pulumi-token", ("pul-",), r"[0-9a-f]{40,}"),
    Prefixed(
        "jwt",
        ("eyJ",),
        _ALONE.replace(".", "eyJ") + r"[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]{1,})*",
    ),
)

# Not inside a longer word; `\n` in quoted text and `%3D` in an address end a word too.
_AT_START = r"(?:(?<![A-Za-z0-9]{0})|(?<=\\[nrt]{0})|(?<=%[0-9A-F][0-9A-F]{0}))"

_BEGIN, _END = "-----BEGIN ", "-----END "
_LABEL = r"(?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
# Up to its end, else as far as the key itself goes, be it indented, quoted or numbered.
_KEY_BLOCK = (
    _BEGIN + _LABEL + r"(?:(?:(?!-----(?:BEGIN|END) )[\s\S]){0,%d}" % MAX_KEY_BLOCK
    + _END + _LABEL
    + r"|(?:(?:\s|\\+[nr]|[>+|]|\d{1,6}[→:\t])*[A-Za-z0-9+/=]{16,}|\s*(?:Proc-Type|DEK-Info):.*)*"
    + r"[A-Za-z0-9+/=\s\\]*)"
)  # fmt: skip
_KEY_LINE = r"(?:\s|[>+|-]|\d{1,6}[→:])*([A-Za-z0-9+/=]{1,80})\s*"
_LINE_END = r"\\n|\n"


class Form(NamedTuple):
    """What no prefix tells: one of `literals` stands in it, and `hide` says what becomes of a match."""

    kind: str
    literals: Tuple[str, ...]
    pattern: str
    hide: Callable[[Match[str], str], str]


def _whole(match: Match[str], mark: str) -> str:
    return mark


def _behind_first(match: Match[str], mark: str) -> str:
    return match.group(1) + mark


def _basic(match: Match[str], mark: str) -> str:
    return match.group(1) + mark if _is_credentials(match.group(2)) else match.group(0)


def _bearer(match: Match[str], mark: str) -> str:
    return match.group(1) + mark if any(map(str.isdigit, match.group(2))) else match.group(0)


def _url(match: Match[str], mark: str) -> str:
    if match.group(2).startswith(("$", "{", "<", "%", "*", "[redacted:")):
        return match.group(0)
    return match.group(1) + mark


def _is_credentials(text: str) -> bool:
    """Whether it is base64 of `user:password`."""
    import base64  # for the few texts that hold such a header

    try:
        decoded = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
        user, colon, password = decoded.decode("utf-8").partition(":")
    except ValueError:  # no base64, or no UTF-8
        return False
    return bool(colon and password) and (user + password).isprintable()


_FORMS = (
    Form(
        "azure-key",
        ("AccountKey=", "SharedAccessKey="),
        r"((?:Account|SharedAccess)Key=)[A-Za-z0-9+/]{40,}={0,2}",
        _behind_first,
    ),
    Form("azure-key", ("Q~",), r"[A-Za-z0-9_~.]" + _ALONE + r"[\w~.]{2}\dQ~[\w~.-]{31,40}", _whole),
    Form("azure-key", ("sig=",), r"([?&;]sig=)[A-Za-z0-9%+/]{40,}={0,2}", _behind_first),
    Form(
        "telegram-token",
        (":AA",),
        r"\d(?:(?<![A-Za-z0-9:].)|(?<=\\[nrt].))\d{7,9}:AA[\w-]{32,}",
        _whole,
    ),
    Form("telegram-token", ("/bot",), r"(/bot)\d{8,10}:[\w-]{34,}", _behind_first),
    Form(
        "discord-token", (".",), r"[MNO]" + _ALONE + r"[\w-]{23,27}\.[\w-]{6,7}\.[\w-]{27,}", _whole
    ),
    Form(
        "mailgun-key",
        ("-",),
        r"[0-9a-f]" + _ALONE + r"[0-9a-f]{31}-[0-9a-f]{8}-[0-9a-f]{8}(?![\w-])",
        _whole,
    ),
    Form(
        "terraform-token",
        (".atlasv1.",),
        r"[A-Za-z0-9](?<![A-Za-z0-9].)[A-Za-z0-9]{13}\.atlasv1\.[\w-]{60,}",
        _whole,
    ),
    Form(
        "bearer-token",
        ("earer",),
        r"([Bb](?:earer|EARER)(?:[ \t:]|%20|\+){1,3})([A-Za-z0-9._~+/-]{20,}=*)",
        _bearer,
    ),
    Form(
        "basic-auth",
        ("asic ", "ASIC "),
        r"([Bb](?:asic|ASIC)[ \t]{1,3})([A-Za-z0-9+/]{8,}={0,2})",
        _basic,
    ),
    Form(
        "basic-auth",
        ("auth",),
        r"(_auth[ \t]{0,3}=[ \t]{0,3}|\"auth\"[ \t]{0,3}:[ \t]{0,3}\")([A-Za-z0-9+/]{8,}={0,2})",
        _basic,
    ),
    Form("url-token", ("://",), r"(://)[0-9a-f]{32}(?::[0-9a-f]{32})?(?=@)", _behind_first),
    Form(
        "url-password",
        ("://",),
        r"(://[^\s:/@\"'`<>\[\]]{0,100}:)([^\s/\"'`<>]{1,200})(?=@[\w.\[-])",
        _url,
    ),
)


def hide_known(text: str, mark: Callable[[str], str]) -> str:
    """`text` with `mark(kind)` in place of every secret that its form gives away."""
    if _BEGIN in text or _END in text:
        text = _hide_key_blocks(text, mark("private-key"))
    for kind, prefixes, rest in _PREFIXED:
        for prefix in prefixes:
            if prefix in text:
                start = re.escape(prefix)
                text = _compiled(start + _AT_START.replace("{0}", start) + rest).sub(
                    mark(kind), text
                )
    for form in _FORMS:
        if any(literal in text for literal in form.literals):
            hide, said = form.hide, mark(form.kind)
            text = _compiled(form.pattern).sub(lambda match: hide(match, said), text)  # noqa: B023
    return text


@lru_cache(maxsize=None)
def _compiled(pattern: str) -> Pattern[str]:
    return re.compile(pattern, re.ASCII | re.MULTILINE)


def _hide_key_blocks(text: str, mark: str) -> str:
    text = _compiled(_KEY_BLOCK).sub(mark, text)
    kept = []
    position = 0
    # The end of a block whose beginning was cut off: the lines of a key before it.
    for match in _compiled(_END + _LABEL).finditer(text):
        start = _start_of_key(text, position, match.start())
        kept += [text[position:start], mark]
        position = match.end()
    kept.append(text[position:])
    return "".join(kept)


def _start_of_key(text: str, lowest: int, end: int) -> int:
    """Where the lines of a key begin that end at `end`, at most `MAX_KEY_BLOCK` characters before."""
    lowest = max(lowest, end - MAX_KEY_BLOCK)
    starts = [lowest] + [match.end() for match in _compiled(_LINE_END).finditer(text, lowest, end)]
    found, stop = end, end
    for start in reversed(starts):
        line = _compiled(_KEY_LINE).fullmatch(text[start:stop].replace("\\n", ""))
        is_short = line is None or len(line.group(1)) < SHORTEST_KEY_LINE
        if is_short and (found < end or (text[start:stop].strip() and line is None)):
            break
        stop = start
        if not is_short:
            found = start
    return found
