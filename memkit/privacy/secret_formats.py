"""Secrets known by their form: a provider's prefix, a key block, a URL, a header.

Each form names literals, one of which must be in the text. Text without any costs a few string searches, and
no regular expression is compiled without need.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from re import Match, Pattern
from typing import NamedTuple

from memkit.privacy.literals import Literals, Places
from memkit.privacy.secret_values import HEX, is_random, literals_of_values

MAX_KEY_BLOCK = 20_000
"""Characters of the longest private key block. An RSA key of 16,384 bits has 13,000."""

SHORTEST_KEY_LINE = 16
"""Characters from which a line counts as part of a key; a key's last line may be shorter."""


# Matches after the first character of a run. Without it the search would be quadratic.
# `\n` in quoted text and the `-` of a diff end a run.
_ALONE = r"(?:(?<![\w-].)|(?<=\\[nrt].)|(?<=[0-9;\[]m.)|(?<=^-.))"

# As documented by each provider: kind, prefixes, and the rest. The rest is taken as far as it goes, so
# that longer keys are hidden as a whole and the search stays linear.
_PREFIXED: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("anthropic-key", ("sk-ant-",), r"[\w-]{16,}"),
    ("openai-key", ("sk-",), r"(?:(?:proj|svcacct|admin|None|service)-(?=[\w-]{0,60}\d)[\w-]{20,}|[A-Za-z0-9]{32,})"),
    ("openrouter-key", ("sk-or-",), r"[\w-]{30,}"),
    # With the secret behind it, as in the console's CSV file and with `--output text`.
    ("aws-key", ("AKIA", "ASIA", "ABIA", "ACCA"), r"[A-Z0-9]{16}(?![A-Za-z0-9])(?:(?:[\s,:;|\"']{1,4}\d{4}-[\d:.T+Z-]{6,30})?[\s,:;|\"']{1,4}[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=]))?"),
    ("aws-key", ("IQoJb3JpZ2lu", "FwoGZXIvYXdz"), r"[A-Za-z0-9/+]{60,}={0,2}"),
    ("google-key", ("AIza",), r"[\w-]{35,}"),
    ("google-key", ("GOCSPX-", "ya29."), r"[\w-]{20,}"),
    ("google-key", ("1//0",), r"[\w-]{40,}"),
    ("github-token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"[A-Za-z0-9]{36,}"),
    ("github-token", ("github_pat_",), r"\w{40,}"),
    ("gitlab-token", ("glpat-", "gldt-", "glrt-", "glrtr-"), r"[\w.-]{19,}[\w-]"),
    ("gitlab-token", ("glptt-", "glcbt-", "glsoat-", "glft-", "glimt-", "glagent-", "gloas-", "glffct-"), r"[\w-]{20,}"),
    ("slack-token", ("xoxe.xox", "xox"), r"[abceoprs]-[A-Za-z0-9-]{10,}"),
    ("slack-token", ("xapp-",), r"\d-[A-Za-z0-9-]{10,}"),
    ("slack-webhook", ("https://hooks.slack.com/",), r"[a-z]{4,12}/[A-Za-z0-9/]{20,}"),
    ("stripe-key", ("sk_live_", "sk_test_", "rk_live_", "rk_test_"), r"[A-Za-z0-9]{16,}[\w-]*"),
    ("stripe-key", ("whsec_",), r"[A-Za-z0-9+/]{24,}={0,2}"),
    ("npm-token", ("npm_",), r"[A-Za-z0-9]{36,}"),
    ("pypi-token", ("pypi-",), r"[\w-]{50,}"),
    ("huggingface-token", ("hf_", "api_org_"), r"[A-Za-z0-9]{30,}"),
    ("sendgrid-key", ("SG.",), r"[\w-]{16,}\.[\w-]{16,}"),
    ("mailgun-key", ("key-",), r"[0-9a-f]{32}(?![A-Za-z0-9])"),
    ("digitalocean-token", ("dop_v1_", "doo_v1_", "dor_v1_"), r"[0-9a-f]{60,}"),
    ("discord-webhook", ("https://discord.com/api/", "https://discordapp.com/api/"), r"(?:v\d{1,2}/)?webhooks/\d{15,22}/[\w-]{50,}"),
    ("databricks-token", ("dapi",), r"[0-9a-f]{32}(?![A-Za-z0-9])(?:-\d)?"),
    ("vault-token", ("hvs.", "hvb.", "hvr."), r"[\w-]{20,}"),
    ("doppler-token", ("dp.",), r"[a-z]{2,5}\.(?:[\w-]{1,40}\.)?[A-Za-z0-9]{40,}"),
    ("memkit-key", ("memkit_key_",), r"[\w-]{40,}"),
    ("linear-key", ("lin_api_", "lin_oauth_"), r"[A-Za-z0-9]{32,}"),
    ("notion-token", ("secret_",), r"[A-Za-z0-9]{43,}"),
    ("notion-token", ("ntn_",), r"[A-Za-z0-9]{40,}"),
    ("sentry-token", ("sntryu_", "sntrys_"), r"[A-Za-z0-9+/=_-]{40,}"),
    ("shopify-token", ("shpat_", "shpca_", "shppa_", "shpss_"), r"[A-Fa-f0-9]{32,}"),
    ("model-key", ("gsk_", "xai-", "pplx-", "r8_"), r"[A-Za-z0-9]{37,}"),
    ("figma-token", ("figd_", "figo_"), r"[\w-]{36,}"),
    ("grafana-token", ("glsa_", "glc_"), r"[\w+/]{32,}={0,3}"),
    ("atlassian-token", ("ATATT3x", "ATCTT3x", "ATBB"), r"[\w=-]{28,}"),
    ("newrelic-key", ("NRAK-", "NRJS-", "NRII-"), r"[\w-]{19,}"),
    ("docker-token", ("dckr_pat_", "dckr_oat_"), r"[\w-]{24,}"),
    ("tailscale-key", ("tskey-",), r"[a-z]{2,10}-[\w-]{20,}"),
    ("supabase-token", ("sbp_",), r"[A-Za-z0-9]{36,}"),
    ("postman-key", ("PMAK-",), r"[\w-]{40,}"),
    ("age-key", ("AGE-SECRET-KEY-1",), r"[A-Z0-9]{50,}"),
    ("rubygems-key", ("rubygems_",), r"[0-9a-f]{40,}"),
    ("pulumi-token", ("pul-",), r"[0-9a-f]{40,}"),
    ("jwt", ("eyJ",), _ALONE.replace(".", "eyJ") + r"[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]{1,})*"),
)  # fmt: skip

# Not inside a longer word. `\n` in quoted text, `%3D` in an address, `\u0022`, and a color whose escape
# character is written out or lost end a word too.
_AT_START = (
    r"(?:(?<![A-Za-z0-9]{0})|(?<=\\[nrt]{0})|(?<=%[0-9A-F][0-9A-F]{0})|(?<=[0-9;\[]m{0})"
    r"|(?<=\\u00[0-9A-Fa-f][0-9A-Fa-f]{0})|(?<=\\x[0-9A-Fa-f][0-9A-Fa-f]{0}))"
)

# Prefixes without a delimiter, of less common providers. The forms of these and of `_WORDS` were
# compared with the rules of gitleaks (MIT license).
_OTHERS = (
    ("AAAA", r"[\w-]{7}:APA91b[\w-]{100,}"),
    ("A3-", r"[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}"),
    ("eyJwYXlsb2Fk", r"[A-Za-z0-9+/]{60,}={0,2}"),  # `aws ecr get-login-password`
    ("eyJ2ZXIiOi", r"[A-Za-z0-9+/]{60,}={0,2}"),  # an enrollment token of Elasticsearch
    ("eyJhbGciOi", r"[\w.-]{20,}(?=\n[\w.-]{16})"),  # the first line of a wrapped JWT
    ("ABSK", r"[A-Za-z0-9+/]{100,}={0,2}"),
    ("AKCp", r"[A-Za-z0-9]{60,}"),
    ("AKID", r"[A-Za-z0-9]{28,}"),
    ("API-", r"[A-Z0-9]{25,32}(?![A-Za-z0-9])"),
    ("AQVN", r"[\w-]{35,}"),
    ("ATTA", r"[0-9a-fA-F]{60,}"),
    ("EAA", r"[\w-]{50,}"),
    ("EZAK", r"[A-Za-z0-9]{50,}"),
    ("EZTK", r"[A-Za-z0-9]{50,}"),
    ("GR1348941", r"[\w-]{20,}"),
    ("IGQ", r"[\w-]{100,}"),
    ("LTAI", r"[A-Za-z0-9]{12,}"),
    ("ZXlK", r"[A-Za-z0-9+/]{60,}={0,2}"),
    ("cio", r"[A-Za-z0-9]{32}(?![A-Za-z0-9])(?<=\d.{20})"),
    ("cmVmd", r"[A-Za-z0-9]{50,}"),
    ("dG9rOm", r"[A-Za-z0-9+/]{40,}={0,2}"),
    ("oy2", r"[a-z0-9]{43}(?![A-Za-z0-9])"),
    ("4b1d", r"[A-Za-z0-9]{38}(?![A-Za-z0-9])"),
    ("cflt", r"[A-Za-z0-9+/]{50,}"),
    ("secret-token:", r"[\w.~%!$&'()*+,;=:@/-]{10,}"),
    ("bedrock-api-key-", r"[A-Za-z0-9+/=]{20,}"),
)

_HEX_ID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
# The text up to the first delimiter, and what must follow.
_RESTS = (
    ("ops_", r"eyJ[\w+/=-]{100,}"),
    ("p8e-", r"[A-Za-z0-9-]{30,}"),
    ("pat-", r"(?:na|eu|ap)\d-" + _HEX_ID),
    ("pat. sat.", r"[\w-]{20,}\.[\w-]{16,}\.[\w-]{16,}"),
    ("sdk- waka_", _HEX_ID),
    ("access-", r"(?:sandbox|development|production)-" + _HEX_ID),
    ("xkeysib- xsmtpsib-", r"[0-9a-f]{40,}-[A-Za-z0-9]{10,}"),
    ("bkua_ squ_ sqp_ sqa_ nrra-", r"[0-9a-f]{40,}"),
    ("clojars_ napi_", r"[a-z0-9]{50,}"),
    ("v1.", r"0-[0-9a-f]{24}-[0-9a-f]{100,}"),
    ("cfpat- fo1_ sq0csp-", r"[\w-]{40,}"),
    ("duffel_", r"(?:live|test)_[\w=-]{40,}"),
    ("sk_", r"(?:[0-9a-f]{40,}|(?:live|test|prod)_(?=[\w-]{0,60}\d)(?=[\w-]{0,60}[A-Z])[\w-]{24,})"),
    ("sk-", r"(?:lf-" + _HEX_ID + r"|[a-z]{2,12}-(?=[\w-]{0,40}\d)(?=[\w-]{0,60}[A-Z0-9])[A-Za-z0-9]{24,})"),
    ("sk. tk.", r"eyJ[\w-]{30,}\.[\w-]{16,}"),
    ("flwseck-", r"[0-9a-zA-Z]{12,}(?:-X)?"),
    ("flwseck_", r"TEST-[0-9a-zA-Z]{12,}(?:-X)?"),
    ("fm2_ fm1a_ fm1r_", r"[A-Za-z0-9+/]{80,}={0,3}"),
    ("fio-", r"u-[\w=-]{60,}"),
    ("hrku-", r"AA[\w-]{50,}"),
    ("dnkey-", r"[\w=-]{20,}-[\w=-]{40,}"),
    ("nvapi- jina_", r"[\w-]{50,}"),
    ("sha256~", r"[\w-]{43}"),
    ("pscale_", r"(?:tkn|pw|oauth)_[\w=.-]{30,}"),
    ("rdme_", r"[a-z0-9]{60,}"),
    ("re_", r"[A-Za-z0-9]{6,12}_[A-Za-z0-9]{20,}"),
    ("tk-", r"us-[\w-]{40,}"),
    ("sgp_", r"(?:[0-9a-fA-F]{16}_|local_)?[0-9a-fA-F]{40,}"),
    ("sm_", r"(?:pat|sat|aat)_[A-Za-z0-9]{16,}"),
    ("sq0atp-", r"[\w-]{20,}"),
    ("tfp_", r"[\w.=-]{50,}"),
    ("vcp_ vca_ vck_ hapi_", r"[A-Za-z0-9]{24,}"),
    ("t1.", r"[\w-]{40,}={0,2}\.[\w-]{80,}={0,2}"),
    ("lsv2_", r"(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}"),
    ("fw_", r"[A-Za-z0-9]{22,}"),
    ("fc-", r"[0-9a-f]{32}(?![A-Za-z0-9])"),
    ("e2b_", r"[0-9a-f]{40}(?![A-Za-z0-9])"),
    ("csk-", r"[a-z0-9]{40,}"),
    ("rnd_", r"[A-Za-z0-9]{28,}"),
    ("esecret_", r"[a-z0-9]{26,}"),
    ("tvly-", r"(?:dev-|prod-)?[\w-]{30,}"),
    ("sb_", r"secret_[\w-]{20,}"),
    ("avns_", r"[\w-]{18,}"),
    ("ccipat_", r"\w{20,}"),
    ("mlsn.", r"[0-9a-f]{60,}"),
    ("rzp_", r"(?:live|test)_[A-Za-z0-9]{14,}"),
    ("zpka_", r"[0-9a-f]{32}_[0-9a-f]{8}"),
    ("hcaik_", r"\w{40,}"),
    ("dt0c01. dt0s01. dt0s16.", r"[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    ("whsec_", r"[A-Za-z0-9+/]{24,}={0,2}"),
)  # fmt: skip
_DISCORD = r"[MNO]" + _ALONE + r"[\w-]{23,27}\.[\w-]{6,7}\.[\w-]{27,}"
_DOT_OF_DISCORD = r"\.(?=[\w-]{6,7}\.[\w-]{27})"

# A token of an unknown provider: words, delimiters, and a tail of random letters and digits.
_TAIL = r"([A-Za-z0-9]{20,200})(?![A-Za-z0-9+/=])[\w-]*"
_MAILGUN = r"[0-9a-f](?<![\w-].)[0-9a-f]{31}-[0-9a-f]{8}-[0-9a-f]{8}(?![\w-])"
_RUN = b"a" * 20
_AS_RUNS = bytes(b"a"[0] if chr(code).isalnum() else b" "[0] for code in range(128)) + b" " * 128
_BEFORE_TAIL = (
    r"(?:(?<![\w+/.%-])|(?<=\\[nrt])|(?<=^-)|(?<=%[0-9A-F][0-9A-F]))"
    r"(?:[a-z]{2,12}|[A-Z]{2,12}|[A-Z][a-z]{1,11})\d{0,2}(?:[_-][A-Za-z0-9]{1,12}){0,3}[_-]\Z"
)
MIN_UNTOLD = 28
"""Characters from which a random tail is a token, whatever word precedes it."""

_TELLS = r"(?i)key|tok|tkn|secret|(?:^|[_-])(?:sk|pat|pw|auth|live|priv|acc|tv)(?:[_-]|\Z)"
_IS_PUBLIC = (
    r"(?i)(?:^|[_-])(?:pk|pub|public|publishable|sha\d{0,3}|md5|hash|digest|integrity|nonce|etag|kid|h1|id|ids|uid|uuid|msg|toolu|req|request|call"
    r"|chatcmpl|resp|run|thread|asst|file|cus|price|prod|evt|pi|ch|sub|seti|pm|acct|txn|cs|trace|span|build|chunk|main|index|css|cache|commit|rev"
    r"|image|layer|blob|dpl|deploy|deployment|prj|team|ver|env|node|task|exec|wf|doc|page|db|ws|org|proj|user|sess|session|fixture|vendor|vendors|bundle|app)(?:[_-]|\Z)"
)

_BEGIN, _END = "-----BEGIN ", "-----END "
_LABEL = r"(?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
# Up to its end, or as far as the key goes, whether indented, quoted, or numbered.
_KEY_BLOCK = (
    _BEGIN + _LABEL + r"(?:(?:(?!-----(?:BEGIN|END) )[\s\S]){0,%d}" % MAX_KEY_BLOCK  # noqa: UP031 - braces of the pattern
    + _END + _LABEL
    + r"|(?:(?:\s|\\+[nr]|[>+|]|\d{1,6}[→:\t])*(?:[\w./-]{1,60}:[ ]?(?:\d{1,6}:)?)?[A-Za-z0-9+/=]{16,}|\s*(?:Proc-Type|DEK-Info):.*)*"
    + r"[A-Za-z0-9+/=\s\\]*)"
)  # fmt: skip
_KEY_LINE = r"(?:[\w./ -]{1,80}:)?(?:\s|[>+|-]|\d{1,6}[→:])*([A-Za-z0-9+/=]{1,80})\s*"
_FIELD = r"\s*(?:[\w./ -]{1,80}:\s*(?:\d{1,6}:)?)?"
_LINE_END = r"\\n|\n"


class Form(NamedTuple):
    """A form of a secret, which text can have only if it contains one of `literals`, if there are any.

    The first group of a match stays visible, and `is_secret` judges the rest. With `ahead`, a match begins that
    many characters before a literal.
    """

    kind: str
    literals: tuple[str, ...]
    pattern: str
    ahead: tuple[int, ...] = ()
    is_secret: Callable[[str], bool] | None = None


def _is_password(text: str) -> bool:
    return text.lower() not in ("password", "pass", "passwd") and not text.startswith(("$", "{", "<", "%", "*", "[redacted:"))


def _is_key_block(text: str) -> bool:
    import base64

    start = text[:128].replace("\\n", "").replace("\\", "")[:64]
    start = start[: len(start) // 4 * 4]  # a part of a group cannot be decoded
    return len(text) >= 64 and b"PRIVATE KEY" in base64.b64decode(start, b"-_")


def _is_credentials(text: str) -> bool:
    import base64  # for the few texts that hold such a header

    try:
        decoded = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
        user, colon, password = decoded.decode("utf-8").partition(":")
    except ValueError:  # no base64, or no UTF-8
        return False
    return bool(colon and password) and (user + password).isprintable()


_CRYPT = ("$1$", "$5$", "$6$", "$8$", "$9$", "$y$", "$7$", "$gy$", "$md5$", "$sha1$", "$apr1$", "$argon2", "$scrypt$", "$pbkdf2", "$P$", "$H$")
_PLACEHOLDER = r"x{8}|X{8}|[A-Z0-9]EXAMPLE(?:KEY)?\b"
_HASHES = ("pbkdf2", "scrypt", "argon2", "bcrypt")
_FORMS = (
    Form("token", ("pat",), r"p" + _ALONE + r"at[A-Za-z0-9]{14}\.[0-9a-f]{60,}", (0,)),
    Form("token", ("_mmk",), r"[A-Za-z0-9]" + _ALONE + r"[A-Za-z0-9]{5}_[A-Za-z0-9]{29}_mmk(?![\w-])", (36,)),
    Form("token", ("-us",), r"[0-9a-f]" + _ALONE + r"[0-9a-f]{31}-us\d{1,2}(?!\w)", (32,)),
    Form("token", ("0/1", "1/1", "2/1"), r"[0-2]" + _ALONE + r"/1\d{14,15}(?:/1\d{14,15})?:[0-9a-f]{32}(?!\w)", (0,)),
    Form("twilio-key", tuple("SK" + digit for digit in HEX), r"SK" + _AT_START.replace("{0}", "SK") + r"[0-9a-f]{32}(?![A-Za-z0-9])", (0,)),
    Form("webhook", ("://hooks.zapier.com/",), r"https?://hooks\.zapier\.com/hooks/catch/[\w/]{8,80}"),
    Form("webhook", ("://hc-ping.com/", "://maker.ifttt.com/"), r"(https?://(?:hc-ping\.com/|maker\.ifttt\.com/[\w/]{1,80}/key/))[\w-]{20,80}"),
    Form("webhook", (".webhook.office.com/",), r"https?://[\w-]{1,60}\.webhook\.office\.com/[\w@/-]{40,400}"),
    Form("password-hash", ("$2$", "$2a$", "$2b$", "$2x$", "$2y$", "$P$", "$H$"), r"\$(?:2[abxy]?\$\d\d\$[A-Za-z0-9./]{50,60}|[PH]\$[B-H9][A-Za-z0-9./]{30})", (0,)),
    Form("password-hash", _CRYPT, r"\$(?:[156-9y]|gy|md5|sha1|apr1|argon2(?:id|i|d)?|scrypt|pbkdf2[\w-]{0,12}|P|H)\$[\w./,=$+-]{20,400}", (0,)),
    Form("password-hash", _HASHES, r"\b(?:pbkdf2|scrypt|argon2|bcrypt)\w{0,12}[:$][\d:]{1,30}[:$][^\s\"']{20,300}", (0,)),
    Form("password-hash", (), r"\*(?<![\w*]\*)[0-9A-F]{40}(?![0-9A-Za-z])"),
    Form("token", ("}</",), r"(>)\{(?:[A-Za-z0-9+/]{40,500}=|AQAAAB[A-Za-z0-9+/]{20,500})={0,2}\}(?=</)"),
    Form("token", ("}</",), r"(<(?:master|password|passphrase|\w{0,20}[Ss]ecret\w{0,20})>)\{[A-Za-z0-9+/=]{20,500}\}(?=</)"),
    Form("token", ("::server:", "::node:"), r"K10" + _AT_START.replace("{0}", "K10") + r"[0-9a-f]{64}::\w{1,40}:[\w.-]{6,80}"),
    Form("token", ("\tTRUE\t", "\tFALSE\t"), r"(\t(?:TRUE|FALSE)\t\d{1,12}\t[\w.-]{1,80}\t)[^\s&]{24,4000}(?=\s|\Z)", is_secret=lambda text: is_random(text[:128])),
    Form("token", ("recovery key", "recovery password"), r"(?<![\d-])(?:\d{6}-){7}\d{6}(?![\d-])"),
    Form("azure-key", ("==",), r"(?<![\w+/-])(?<!sha512[:=])(?<!sha512[:=][ \"'])(?<!sha512\": \")[A-Za-z0-9+/]{86}==(?![\w=])", (86,)),
    Form("token", ("[redacted:",), r"(\[redacted:[a-z-]+\][\"'],\s{1,20}[\"'](?:0x)?)[0-9a-f]{32,64}(?=[\"'])"),
    Form("token", (":fx",), _HEX_ID + r":fx\b", (36,)),
    Form("azure-key", ("FULL", "Full"), r"(F(?:ULL|ull)[\",\s]{1,40}(?:\"value\": ?\")?)[A-Za-z0-9+/]{80,}={0,2}", (0,)),
    Form("password-hash", ("md5",), r"md5(?<![\w/]md5)[0-9a-f]{32}(?!\w)", (0,)),
    Form("password-hash", ("SCRAM-SHA-",), r"SCRAM-SHA-\d{1,3}\$[\w+/=:$]{40,300}"),
    Form("password-hash", ("{SHA", "{SSHA", "{MD5", "{SMD5", "{CRYPT", "{PBKDF2"), r"\{(?:S?SHA\d{0,3}|S?MD5|CRYPT|PBKDF2[\w-]{0,12})\}[A-Za-z0-9+/=$.]{20,300}"),
    Form("password-hash", ("aad3b435b51404ee", ":::", ":xxxxxxxx"), r"(:\d{1,9}:[0-9a-fA-FX]{32}:)[0-9a-fA-F]{32}(?=:)"),
    Form("private-key", ("LS0tLS1CRUdJTi",), r"LS0tLS1CRUdJTi[A-Za-z0-9+/_\\n-]{40,30000}={0,2}", is_secret=_is_key_block),
    Form("private-key", ("Private-Lines:",), r"(Private-Lines: {0,4}\d{1,4}(?:\n|\\n))(?:[\s>+|]{0,8}[A-Za-z0-9+/=]{4,80}(?:\\n|\n|\Z)){1,400}"),
    Form("private-key", ('"kty"', '"kty\\"'), r"(\"(?:d|p|q|dp|dq|qi|k)\\*\"[ \t]{0,3}:[ \t]{0,3}\\*\")[\w-]{20,2000}"),
    Form("azure-key", ("AccountKey=", "SharedAccessKey="), r"((?:Account|SharedAccess)Key=)[A-Za-z0-9+/]{40,}={0,2}", (0,)),
    Form("azure-key", tuple(digit + "Q~" for digit in HEX[:10]), r"[A-Za-z0-9_~.]" + _ALONE + r"[\w~.]{2}\dQ~[\w~.-]{31,40}", (3,)),
    Form("azure-key", ("sig=", "ignature="), r"([?&;][\w-]{0,20}[Ss]ig(?:nature)?=)[A-Za-z0-9%+/]{40,}={0,2}"),
    Form("telegram-token", (":AA",), r"\d(?:(?<![A-Za-z0-9:].)|(?<=\\[nrt].))\d{7,9}:AA[\w-]{32,}", (8, 9, 10)),
    Form("telegram-token", ("/bot",), r"(/bot)\d{8,10}:[\w-]{34,}"),
    Form("terraform-token", (".atlasv1.",), r"[A-Za-z0-9]" + _ALONE + r"[A-Za-z0-9]{13}\.atlasv1\.[\w-]{60,}", (14,)),
    Form("bearer-token", ("earer", "EARER"), r"([Bb](?:earer|EARER)(?:[ \t:]|%20|\+){1,3})[A-Za-z0-9._~+/-]{20,}=*", (1,), lambda text: any(map(str.isdigit, text))),
    Form("basic-auth", ("asic", "ASIC"), r"([Bb](?:asic|ASIC)[ \t]{1,3})[A-Za-z0-9+/]{8,}={0,2}", (1,), _is_credentials),
    Form("basic-auth", ("base64 -",), r"(\becho (?:-n )?[\"']?)[A-Za-z0-9+/]{8,}={0,2}(?=[\"']?[ ]?\|[ ]?base64 -)", (), _is_credentials),
    Form("basic-auth", ("auth",), r"(_auth[ \t]{0,3}=[ \t]{0,3}|\"auth\"[ \t]{0,3}:[ \t]{0,3}\")[A-Za-z0-9+/]{8,}={0,2}", (1,), _is_credentials),
    Form("url-token", ("://",), r"(://)[0-9a-f]{32}(?::[0-9a-f]{32})?(?=@)"),
    Form("url-password", ("@tcp(",), r"([\"'\s][\w.-]{1,40}:)[^\s/\"'`<>:@]{1,200}(?=@tcp\()", is_secret=_is_password),
    Form("url-password", ("://",), r"(://[^\s:/@\"'`<>\[\]]{0,100}:)[^\s/\"'`<>]{1,200}(?=@[\w.\[-])", is_secret=_is_password),
)  # fmt: skip


def known(text: str, places: Places) -> list[tuple[tuple[int, int], str]]:
    """Return the span and the kind of every secret known by its form. `places` are those `of_literals`."""
    found = []
    if _BEGIN in text or _END in text:
        spans = [match.span() for match in _compiled(_KEY_BLOCK).finditer(text)]
        found += [(span, "private-key") for span in (*spans, *_cut_key_blocks(text))]
    forms, numbers = _forms()
    for number in sorted({number for literal in numbers.keys() & ["", *places] for number in numbers[literal]}):
        form = forms[number]
        found += [(span, form.kind) for span in _spans(text, form, places)]
    for dot in _compiled(_DOT_OF_DISCORD).finditer(text):
        starts = range(max(0, dot.start() - 28), dot.start() - 23)
        found += [(token.span(), "discord-token") for start in starts if (token := _compiled(_DISCORD).match(text, start))]
    return found + [(span, "token") for span in _random_tails(text)]


def without_wrapped_lines(text: str) -> str:
    """Return `text` without the lines that continue a token whose first line is hidden."""
    for start, end in reversed([*_wrapped_lines(text)]):
        text = text[:start] + text[end:]
    return text


def _wrapped_lines(text: str) -> Iterator[tuple[int, int]]:
    for mark in _compiled(r"\[redacted:(?:[a-z-]*(?:key|token)|jwt|secret)\](?=[ \t│|]*\\?\n)").finditer(text):
        lines = _compiled(r"(?:[ \t│|]*\\?\n[ \t│|]{0,9}[\w.+/=-]{40,200}(?=[\s\\]))*[ \t│|]*\\?\n[ \t│|]{0,9}[\w.+/=-]{2,200}(?=[\s\"']|\Z)").match(text, mark.end())
        first = lines[0].split("\n")[1].strip(" \t│|") if lines else ""
        if lines and len(first) >= 16 and not first.islower() and first.strip(HEX) and is_random(first):
            yield lines.span()


@cache
def _forms() -> tuple[list[Form], dict[str, list[int]]]:
    """Return all forms, and the numbers of those that have each literal."""
    tokens = [(kind, prefix, rest) for kind, prefixes, rest in _PREFIXED for prefix in prefixes]
    tokens += [("token", prefix, rest) for prefix, rest in _OTHERS]
    forms = []
    for kind, prefix, rest in tokens:
        start = re.escape(prefix)
        forms.append(Form(kind, (prefix,), start + _AT_START.replace("{0}", start) + rest, (0,)))
    for words, rest in _RESTS:
        for word in words.split():
            start = re.sub("[a-z]", lambda letter: f"[{letter[0]}{letter[0].upper()}]", re.escape(word))
            pattern = start + _AT_START.replace("0-9]{0}", r"0-9\\]{0}").replace("{0}", start) + rest
            forms.append(Form("token", (word,), pattern, (0,)))
    forms += _FORMS
    numbers: dict[str, list[int]] = {}
    for number, form in enumerate(forms):
        for literal in {literal.lower() for literal in form.literals or ("",)}:
            numbers.setdefault(literal, []).append(number)
    return forms, numbers


def of_literals(lowered: str) -> Places:
    """Return where the literals of all rules are in a text in lower case."""
    return _literals().find(lowered)


@cache
def _literals() -> Literals:
    return Literals({*literals_of_values(), *_forms()[1]} - {""})


def _spans(text: str, form: Form, places: Places) -> Iterator[tuple[int, int]]:
    pattern = _compiled(form.pattern)
    for match in _matches_near(text, pattern, form, places) if form.ahead else pattern.finditer(text):
        start, end = match.end(1) if pattern.groups else match.start(), match.end()
        if (form.is_secret is None or form.is_secret(text[start:end])) and not _compiled(_PLACEHOLDER).search(text, start, end):
            yield start, end


def _matches_near(text: str, pattern: Pattern[str], form: Form, places: Places) -> Iterator[Match[str]]:
    literals = [at for literal in form.literals for at in places.get(literal.lower(), ())]
    done = 0
    for start in sorted(at - ahead for at in literals for ahead in form.ahead):
        match = pattern.match(text, start) if start >= done else None
        if match is not None:
            yield match
            done = match.end()


def _random_tails(text: str) -> Iterator[tuple[int, int]]:
    runs = text.encode("ascii", "replace").translate(_AS_RUNS)
    start = runs.find(_RUN)
    while start >= 0:
        end = start + len(_RUN)
        if text[max(0, start - 1)] in "_-":
            tail = _compiled(_TAIL).match(text, start)
            if tail:
                end = tail.end()
                begin = _start_of_token(text, start, tail[1])
                if begin is not None:
                    yield begin, end
        elif mailgun := _compiled(_MAILGUN).match(text, start):
            yield mailgun.span()
        start = runs.find(_RUN, runs.find(b" ", end))

def _start_of_token(text: str, start: int, tail: str) -> int | None:
    """Return where the token with the random part `tail` begins, or None if it is no token."""
    capitals, small, digits = (
        sum(map(test, tail)) for test in (str.isupper, str.islower, str.isdigit)
    )
    is_hex = len(tail) >= 32 and not capitals and min(small, digits) > 2 and not tail.strip(HEX)
    if not is_hex and (min(capitals, small, digits) < 1 or not is_random(tail)):
        return None
    before = _compiled(_BEFORE_TAIL).search(text, max(0, start - 60), start)
    if before is None:
        with_2 = _compiled(r"2" + _ALONE + r"[A-Za-z0-9]{26}_").match(text, max(0, start - 28))
        return start - 28 if with_2 else None
    if _compiled(_IS_PUBLIC).search(before.group()):
        return None
    tells = _compiled(_TELLS).search(before.group()) is not None
    is_token = (tells and len(tail) >= 24) or (not is_hex and len(tail) >= MIN_UNTOLD)
    return before.start() if is_token else None


@cache
def _compiled(pattern: str) -> Pattern[str]:
    return re.compile(pattern, re.ASCII | re.MULTILINE)


def _cut_key_blocks(text: str) -> Iterator[tuple[int, int]]:
    """Yield the key lines before the end of each block whose beginning was cut off."""
    position = 0
    for match in _compiled(_END + _LABEL).finditer(text):
        yield _start_of_key(text, position, match.start()), match.end()
        position = match.end()


def _start_of_key(text: str, lowest: int, end: int) -> int:
    lowest = max(lowest, end - MAX_KEY_BLOCK)
    starts = [lowest] + [match.end() for match in _compiled(_LINE_END).finditer(text, lowest, end)]
    found, stop = end, end
    for start in reversed(starts):
        line = _compiled(_KEY_LINE).fullmatch(text[start:stop].replace("\\n", ""))
        is_short = line is None or len(line.group(1)) < SHORTEST_KEY_LINE
        is_other = line is None and _compiled(_FIELD).fullmatch(text[start:stop]) is None
        if is_short and (found < end or is_other):
            break
        stop = start
        if not is_short:
            found = start
    return found
