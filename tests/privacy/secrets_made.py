"""Secrets of all kinds, and what only looks like one; all made when asked for, none written down.

`secrets(seed, count)` and `look_alikes(seed, count)` are the same for the same seed. Prefixes stand in
two parts, so that no scanner of repositories mistakes this file for a leak.
"""

from __future__ import annotations

import base64
import hashlib
import json
import random
import re
import string
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle, islice

ALPHANUMERIC = string.ascii_letters + string.digits
URL_SAFE = ALPHANUMERIC + "-_"
BASE64 = ALPHANUMERIC + "+/"
HEX = "0123456789abcdef"
UPPER = string.ascii_uppercase + string.digits

FRAMES = (
    "{}", "the key is {}, keep it", 'KEY="{}"', "(see {})", "x: {}\nnext line", "- `{}`\n", "+{}", "-{}",
    '{{"output": "first line\\n{}\\nlast"}}', "curl -H 'X-Key: {}' https://api.example.com/v1", "    12→{}",
    'client = Client("{}")', "<value>{}</value>", "https://example.com/hook?key={}&next=1", "|{}|", "export K={};",
)  # fmt: skip
"""Where a secret that is known by its own form may stand."""


@dataclass(frozen=True)
class Planted:
    """A text; `secret` must not be found in it any more (empty in a look-alike)."""

    kind: str
    text: str
    secret: str = ""


class Maker:
    """Makes random values of the shapes the providers document."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def text(self, count: int, alphabet: str = ALPHANUMERIC) -> str:
        return "".join(self.random.choice(alphabet) for _ in range(count))

    def bytes(self, count: int) -> bytes:
        return bytes(self.random.randrange(256) for _ in range(count))

    def base64(self, count: int) -> str:
        return base64.b64encode(self.bytes(count)).decode()

    def one_of(self, *choices: str) -> str:
        return self.random.choice(choices)

    def framed(self, secret: str, *frames: str) -> tuple[str, str]:
        return self.random.choice(frames or FRAMES).format(secret), secret

    def password(self) -> str:
        """As people and generators make them: letters, digits, symbols."""
        count = self.random.randint(10, 24)
        mixed = self.text(count - 3) + self.text(1, "!#%^*+~?") + self.text(2, string.digits)
        return self.one_of(mixed, self.text(count - 2) + self.text(2, string.digits))

    def key(self) -> str:
        """A key without a form of its own."""
        return self.one_of(
            self.text(32, HEX), self.text(40), self.text(24), self.text(43, URL_SAFE), str(self.uuid())
        )

    def uuid(self) -> uuid.UUID:
        return uuid.UUID(int=self.random.getrandbits(128), version=4)

    def words(self, separator: str, count: int) -> str:
        return separator.join(self.random.choice(WORDS) for _ in range(count))


WORDS = (
    "account token secret password parser index chunk session gateway billing invoice render cache worker queue key "
    "policy controller release staging archive search ranking embed service retry schema migration credential access"
).split()


def _openai(make: Maker) -> tuple[str, str]:
    middle = "T3Blbk" + "FJ"
    return make.framed("sk-" + make.one_of(
        make.text(20) + middle + make.text(20),
        "proj-" + make.text(74, URL_SAFE) + middle + make.text(74, URL_SAFE),
        "svcacct-" + make.text(58, URL_SAFE) + middle + make.text(58, URL_SAFE),
        "admin-" + make.text(58, URL_SAFE) + middle + make.text(58, URL_SAFE),
        "None-" + make.text(48),
        make.text(48),
    ))  # fmt: skip


def _aws_secret(make: Maker) -> tuple[str, str]:
    return make.framed(
        make.text(40, BASE64),
        "aws_secret_access_key = {}", "AWS_SECRET_ACCESS_KEY={}", '"SecretAccessKey": "{}"', "secretAccessKey: '{}',",
        "aws configure set aws_secret_access_key {}", "export AWS_SECRET_ACCESS_KEY='{}'", 'aws_secret_key: "{}"',
        "AK" + "IA" + make.text(16, UPPER) + ",{}", "-e AWS_SECRET_ACCESS_KEY={} app",
    )  # fmt: skip


def _google_oauth(make: Maker) -> tuple[str, str]:
    return make.framed(make.one_of(
        "GOC" + "SPX-" + make.text(28, URL_SAFE), "ya" + "29." + make.text(140, URL_SAFE), "1/" + "/0" + make.text(60, URL_SAFE)
    ))  # fmt: skip


def _pem(make: Maker, label: str, lines: int) -> str:
    body = "\n".join(make.text(64, BASE64) for _ in range(lines))
    return f"-----BEGIN {label}PRIVATE " + f"KEY-----\n{body}\n-----END {label}PRIVATE " + "KEY-----\n"


def _service_account(make: Maker) -> tuple[str, str]:
    key = _pem(make, "", 26)
    account = {"type": "service_account", "project_id": "shop-1", "private_key": key, "client_id": make.text(21, "123")}
    return json.dumps(account, indent=make.random.choice([None, 2])), key.split("\n")[5]


def _azure_storage(make: Maker) -> tuple[str, str]:
    key = make.base64(64)
    frame = "DefaultEndpointsProtocol=https;AccountName=shop;AccountKey={};EndpointSuffix=core.windows.net"
    return make.framed(key, frame, f'"{frame}"', "AccountKey={}", "Endpoint=sb://shop/;SharedAccessKey={}")


def _azure_signature(make: Maker) -> tuple[str, str]:
    signature = make.base64(32).replace("+", "%2B").replace("/", "%2F").replace("=", "%3D")
    url = "https://shop.blob.core.windows.net/c/b.txt?sv=2024-11-04&se=2026-01-01T00%3A00Z&sr=b&sp=r&sig={}"
    return make.framed(signature, url, url + "&spr=https", f'"{url}"', "?sig={}&sv=2024-11-04")


def _github(make: Maker) -> tuple[str, str]:
    return make.framed(make.one_of(
        "gh" + make.one_of("p", "o", "u", "s", "r") + "_" + make.text(36),
        "github" + "_pat_" + make.text(22) + "_" + make.text(59),
    ))  # fmt: skip


def _gitlab(make: Maker) -> tuple[str, str]:
    return make.framed("gl" + make.one_of(
        "pat-" + make.text(20, URL_SAFE), "pat-" + make.text(27, URL_SAFE) + ".01." + make.text(9, string.ascii_lowercase + string.digits),
        "rt-" + make.text(20, URL_SAFE), "ptt-" + make.text(40, HEX), "dt-" + make.text(20, URL_SAFE), "soat-" + make.text(20, URL_SAFE),
        "cbt-" + make.text(2) + "_" + make.text(20), "oas-" + make.text(64, HEX),
    ))  # fmt: skip


def _slack(make: Maker) -> tuple[str, str]:
    number = make.text(12, string.digits)
    return make.framed("xo" + make.one_of(
        f"xb-{number}-{number}-{make.text(24)}", f"xp-{number}-{number}-{number}-{make.text(32, HEX)}",
        f"xe.xoxp-1-{make.text(160)}", f"xa-2-{number}-{make.text(32, HEX)}",
    ))  # fmt: skip


def _slack_webhook(make: Maker) -> tuple[str, str]:
    secret = make.text(24)
    url = f"https://hooks.slack.com/services/T{make.text(10, UPPER)}/B{make.text(10, UPPER)}/{secret}"
    return make.framed(url, "{}", "curl -d x {}", 'url: "{}"', "<{}|hook>")[0], secret


def _stripe(make: Maker) -> tuple[str, str]:
    return make.framed(
        make.one_of("sk_" + "live_", "rk_" + "live_", "sk_" + "test_", "whs" + "ec_") + make.text(make.random.choice([24, 32, 99]))
    )


def _npm(make: Maker) -> tuple[str, str]:
    if make.random.random() < 0.5:
        return make.framed("npm" + "_" + make.text(36))
    other = make.one_of(str(make.uuid()), make.base64(24))
    return make.framed(other, "//registry.example.com/:_authToken={}", "//npm.example.com/team/:_authToken={}\nregistry=x")


def _twilio(make: Maker) -> tuple[str, str]:
    if make.random.random() < 0.5:
        return make.framed("S" + "K" + make.text(32, HEX))
    return make.framed(make.text(32, HEX), "TWILIO_AUTH_TOKEN={}", 'auth_token="{}"', "authToken: '{}'", "twilio auth token is {}")


def _telegram(make: Maker) -> tuple[str, str]:
    return make.framed(
        str(make.random.randint(10**8, 10**10 - 1)) + ":AA" + make.text(33, URL_SAFE),
        *FRAMES, "https://api.telegram.org/bot{}/getMe",
    )  # fmt: skip


def _discord(make: Maker) -> tuple[str, str]:
    token = make.one_of("M", "N", "O") + make.text(25) + "." + make.text(6, URL_SAFE) + "." + make.text(38, URL_SAFE)
    hook = make.text(68, URL_SAFE)
    if make.random.random() < 0.5:
        return make.framed(token)
    return make.framed(hook, "https://discord.com/api/webhooks/1098765432109876543/{}", "https://discordapp.com/api/webhooks/1098765432109876543/{}")


def _sentry(make: Maker) -> tuple[str, str]:
    frames = ("https://{}@o4505.ingest.sentry.io/450512", "https://{}@o1.ingest.us.sentry.io/2", 'dsn: "https://{}@sentry.example.com/2"')
    if make.random.random() < 0.3:
        return make.framed("sntry" + "u_" + make.text(64, HEX))
    if make.random.random() < 0.3:
        secret = make.text(32, HEX)
        return make.framed(make.text(32, HEX) + ":" + secret, *frames)[0], secret
    return make.framed(make.text(32, HEX), *frames)


def _private_key(make: Maker) -> tuple[str, str]:
    key = _pem(make, make.one_of("RSA ", "EC ", "OPENSSH ", "DSA ", "ENCRYPTED ", ""), make.random.randint(6, 30))
    lines = key.splitlines()
    secret = lines[len(lines) // 2]
    cut = "\n".join(lines[: len(lines) // 2 + 1])
    tail = "\n".join(lines[len(lines) // 2 :])
    numbered = "\n".join(f"{number:6}→{line}" for number, line in enumerate(lines, 1))
    return make.one_of(
        key, key.replace("\n", "\\n"), "\n".join("    " + line for line in lines), numbered, cut, tail,
        f'KEY="{key}"', "\n".join("> " + line for line in lines),
    ), secret  # fmt: skip


def _jwt(make: Maker) -> tuple[str, str]:
    parts = [{"alg": "HS256", "typ": "JWT"}, {"sub": make.text(12), "iat": make.random.randrange(10**9)}]
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return make.framed(".".join([*encoded, make.text(43, URL_SAFE)]))


def _database(make: Maker) -> tuple[str, str]:
    scheme = make.one_of("postgres", "postgresql+asyncpg", "mysql", "mongodb+srv", "redis", "rediss", "amqp", "amqps", "mssql")
    user = "" if scheme.startswith("redis") else make.one_of("app", "root", "svc-user")
    secret = make.one_of(make.password().replace("?", "x").replace("#", "x"), make.text(8) + "@" + make.text(8), make.words("", 2))
    return make.framed(secret, f"{scheme}://{user}:{{}}@db.internal:5432/shop", f'DATABASE_URL="{scheme}://{user}:{{}}@10.0.0.7/shop?ssl=1"')


def _bearer(make: Maker) -> tuple[str, str]:
    return make.framed(
        make.one_of(make.text(40), make.text(32, HEX), make.text(64, URL_SAFE)),
        "Authorization: Bearer {}", "-H 'authorization: bearer {}'", '"Authorization": "Bearer {}"', "headers={{'Authorization': f'Bearer {}'}}",
        'Authorization: "Bearer {}"', "Authorization: token {}", "PRIVATE-TOKEN: {}", "X-Api-Key: {}",
    )  # fmt: skip


def _basic(make: Maker) -> tuple[str, str]:
    pair = f"{make.words('-', 1)}:{make.password()}"
    return make.framed(
        base64.b64encode(pair.encode()).decode(),
        "Authorization: Basic {}", '"Authorization": "Basic {}"', "-H 'authorization: basic {}'", '"auth": "{}"', "_auth={}",
    )  # fmt: skip


def _environment(make: Maker) -> tuple[str, str]:
    name = make.one_of("DB_PASSWORD", "API_KEY", "SECRET_KEY", "JWT_SECRET", "SESSION_TOKEN", "PGPASSWORD", "ENCRYPTION_KEY", "SMTP_PASS", "DJANGO_SECRET_KEY")
    value = make.one_of(make.password(), make.key())
    return make.framed(value, name + "={}", "export " + name + "={}", name + '="{}"', name + "='{}'", "A=1\n" + name + "={}\nB=2", "set " + name + "={}", "ENV " + name + " {}")


def _json(make: Maker) -> tuple[str, str]:
    name = make.one_of("password", "apiKey", "client_secret", "access_token", "db_password", "secretKey", "refreshToken")
    value = make.one_of(make.password(), make.key())
    return make.framed(value, '{{"' + name + '": "{}"}}', '{{"a": 1, "' + name + '":"{}", "b": 2}}', '"{{\\"' + name + '\\": \\"{}\\"}}"', "  '" + name + "': '{}',")


def _yaml(make: Maker) -> tuple[str, str]:
    name = make.one_of("password", "api_key", "clientSecret", "auth-token", "db_password", "private_token")
    value = make.one_of(make.password(), make.key())
    return make.framed(value, name + ": {}", name + ": '{}'", "db:\n  user: app\n  " + name + ": {}\n  port: 5", "- " + name + ': "{}"', name + ' = "{}"')


def _flag(make: Maker) -> tuple[str, str]:
    value = make.one_of(make.password().replace("#", "x"), make.key())
    return make.framed(
        value, "app --password {} --verbose", "app --token={} run", "app --api-key '{}'", "mysql -u root -p'{}' shop", "mysqldump -uroot -p{} shop",
        "sshpass -p {} ssh host", "curl -u admin:{} https://example.com", "docker login -u me -p {} registry.example.com", 'tool --client-secret "{}"',
        "redis-cli -h cache -a {} ping", "app --db-password {}",
    )  # fmt: skip


def _code(make: Maker) -> tuple[str, str]:
    value = make.one_of(make.password(), make.key())
    return make.framed(
        value, 'password: str = "{}"', 'client.setPassword("{}")', 'os.environ["API_KEY"] = "{}"', "config.set('password', '{}')", "const apiKey = `{}`;",
        "<password>{}</password>", '<add key="ApiKey" value="{}"/>', 'String clientSecret = "{}";', "token := \"{}\"", "define('AUTH_KEY', '{}');",
    )  # fmt: skip


def _said(make: Maker) -> tuple[str, str]:
    value = make.one_of(make.text(10) + make.text(1, "!#%&") + make.text(2, string.digits), make.text(32), make.text(24) + "7")
    return make.framed(
        value, "the password is {}", "use the token `{}` for staging", "my api key: {}", "The new secret is '{}'.", "password {} works",
        "machine example.com login me password {}", "Set the API key to {} please", "**Password:** {}", "- password: `{}`",
    )  # fmt: skip


def _others(make: Maker) -> tuple[str, str]:
    return make.framed(make.one_of(
        "shp" + "at_" + make.text(32, HEX), "gs" + "k_" + make.text(52), "xai" + "-" + make.text(80), "r" + "8_" + make.text(37), "fig" + "d_" + make.text(40, URL_SAFE),
        "gls" + "a_" + make.text(32) + "_" + make.text(8, HEX), "ATATT" + "3x" + make.text(180, URL_SAFE), "NR" + "AK-" + make.text(27, UPPER), "dckr" + "_pat_" + make.text(27, URL_SAFE),
        "tsk" + "ey-auth-" + make.text(12) + "-" + make.text(32), "sb" + "p_" + make.text(40, HEX), "sk-" + "or-v1-" + make.text(64, HEX), "PM" + "AK-" + make.text(24, HEX) + "-" + make.text(34, HEX),
        "AGE-SECRET" + "-KEY-1" + make.text(58, UPPER), "rubygems" + "_" + make.text(48, HEX), "pplx" + "-" + make.text(48), "pul" + "-" + make.text(40, HEX), make.text(14) + ".atlas" + "v1." + make.text(67),
    ))  # fmt: skip


SECRETS: dict[str, Callable[[Maker], tuple[str, str]]] = {
    "Anthropic": lambda make: make.framed("sk-" + "ant-" + make.one_of("api03-", "oat01-", "admin01-") + make.text(93, URL_SAFE) + "AA"),
    "OpenAI": _openai,
    "AWS key id": lambda make: make.framed(make.one_of("AK" + "IA", "AS" + "IA") + make.text(16, string.ascii_uppercase + "234567")),
    "AWS secret": _aws_secret,
    "Google API": lambda make: make.framed("AI" + "za" + make.text(35, URL_SAFE)),
    "Google OAuth": _google_oauth, "service account": _service_account, "Azure storage": _azure_storage,
    "Azure client": lambda make: make.framed(make.text(3) + make.text(1, string.digits) + "Q~" + make.text(34, URL_SAFE + "~.")),
    "Azure SAS": _azure_signature, "GitHub": _github, "GitLab": _gitlab, "Slack": _slack, "Slack webhook": _slack_webhook,
    "Stripe": _stripe, "npm": _npm,
    "PyPI": lambda make: make.framed("pypi" + "-AgEIcHlwaS5vcmc" + make.text(make.random.randint(80, 160), URL_SAFE)),
    "HuggingFace": lambda make: make.framed("hf" + "_" + make.text(34)),
    "SendGrid": lambda make: make.framed("SG" + "." + make.text(22, URL_SAFE) + "." + make.text(43, URL_SAFE)),
    "Twilio": _twilio,
    "Mailgun": lambda make: make.framed(make.one_of("key" + "-" + make.text(32, HEX), "-".join([make.text(32, HEX), make.text(8, HEX), make.text(8, HEX)]))),
    "DigitalOcean": lambda make: make.framed("do" + make.one_of("p", "o", "r") + "_v1_" + make.text(64, HEX)),
    "Telegram": _telegram, "Discord": _discord,
    "Databricks": lambda make: make.framed("da" + "pi" + make.text(32, HEX) + make.one_of("", "-2")),
    "Vault": lambda make: make.framed(make.one_of("hv" + "s.", "hv" + "b.") + make.text(make.random.choice([24, 90, 130]), URL_SAFE)),
    "Doppler": lambda make: make.framed("dp" + make.one_of(".pt.", ".st.", ".st.prod.", ".ct.", ".sa.") + make.text(43)),
    "Linear": lambda make: make.framed("lin" + make.one_of("_api_" + make.text(40), "_oauth_" + make.text(64, HEX))),
    "Notion": lambda make: make.framed(make.one_of("secret" + "_" + make.text(43), "nt" + "n_" + make.text(46))),
    "Sentry": _sentry, "private key": _private_key, "JWT": _jwt, "database URL": _database, "bearer": _bearer, "basic": _basic,
    "environment": _environment, "JSON": _json, "YAML": _yaml, "command line": _flag, "code": _code, "said": _said,
    "others": _others,
}  # fmt: skip


def _digest(make: Maker) -> str:
    name = make.one_of("md5", "sha1", "sha256", "sha512")
    value = hashlib.new(name, make.bytes(20)).hexdigest()
    return make.one_of("{1}", "{0}:{1}", "{1}  dist/app.tar.gz", 'checksum = "{1}"', "ETag: \"{1}\"", "token_{0}: {1}", "/cache/{1}.bin", "image@{0}:{1}").format(name, value)


def _commit(make: Maker) -> str:
    sha = make.text(40, HEX)
    return make.one_of("commit {}", "Merge {}", "git show {}", "HEAD is now at {}", "fix token refresh ({})", "https://github.com/a/b/commit/{}", "uses: a/b@{}", "revert the password change {}").format(make.one_of(sha, sha[:7], sha[:12]))


def _identifier(make: Maker) -> str:
    value = str(make.uuid())
    return make.one_of("{}", '"id": "{}"', "session {}", "/users/{}/tokens", "request_id={}", "urn:uuid:{}", "token_id: {}", '"uuid":"{}"', "secret-version/{}").format(make.one_of(value, value.upper()))


def _image(make: Maker) -> str:
    data = make.base64(make.random.randint(60, 1500))
    return make.one_of("data:image/png;base64,{}", '<img src="data:image/jpeg;base64,{}">', "url(data:font/woff2;base64,{})", '{{"type": "base64", "media_type": "image/png", "data": "{}"}}', "{}").format(data)


def _lock(make: Maker) -> str:
    sha512 = base64.b64encode(make.bytes(64)).decode()
    hexadecimal = make.text(64, HEX)
    name = make.words("-", 2)
    return make.one_of(
        f'"integrity": "sha512-{sha512}"', f'  integrity sha512-{sha512}', f'{{file = "{name}-1.2.3.whl", hash = "sha256:{hexadecimal}"}},',
        f"--hash=sha256:{hexadecimal}", f'name = "{name}"\nversion = "0.4.1"\nchecksum = "{hexadecimal}"', f"github.com/a/{name} v1.4.2 h1:{make.base64(32)}",
        f'"node_modules/{name}": {{"version": "4.0.0-beta.11", "resolved": "https://registry.example.com/{name}/-/{name}-4.0.0.tgz"', f'"{name}": "^4.10.0-rc.2"',
        f'{name}@^3.0.0 || ^4.0.0:\n  version "4.0.0"', f"{name}==2.31.0.post1", f'"{name}": "workspace:^1.20.3"',
    )  # fmt: skip


def _name(make: Maker) -> str:
    name = make.words("_", make.random.randint(3, 6)) + make.one_of("", "_v2", "2", "_utf8", "_sha256")
    camel = "".join(part.title() for part in name.split("_"))
    return make.one_of(
        f"def test_{name}() -> None:", f"{name} = load_{name}(config2)", f"const {camel} = use{camel}();", f"from app.{name} import {camel}", f"class {camel}(Base{camel}):",
        f"token = {name}", f"password={name},", f"secret: {camel},", f"api_key = settings.{name}", f"{camel}.{name}", f"self.access_token = {name}.value2", f"kubectl get secret {name.replace('_', '-')}",
        f"secretName: {name.replace('_', '-')}", f"password: {name}_field", f"#{name.replace('_', '-')}", f"if token == {name}:", f"TOKEN_{name.upper()}",
    )  # fmt: skip


def _path(make: Maker) -> str:
    path = make.words("/", make.random.randint(3, 6)) + make.one_of("/v2", "/index2.py", ".test.ts", "/2026-03-04.md")
    return make.one_of(
        f"/home/me/{path}", f"./{path}:42", f"C:\\{path}", f"password_file: /run/{path}", f"secret: ../{path}", f"token_path = '/var/{path}'", f"--token-file /etc/{path}", f"see src/{path}",
        f"secret = /etc/{path}", f"credentials: ~/{path}", f'"secret": "/mnt/{path}"',
    )  # fmt: skip


def _address(make: Maker) -> str:
    path = make.words("/", 3)
    return make.one_of(
        f"https://example.com:8080/{path}?page=2&sort=asc#top", f"http://localhost:3000/{path}", f"postgres://db.internal:5432/{path}", "git@github.com:team/app.git", f"ssh://git@host:22/{path}.git",
        f"https://me@example.com/{path}", f"token_url: https://auth.example.com/{path}2", f"mongodb://localhost:27017/{path}", f"https://example.com/{path}/@types/node@20.1.2", f"redis://cache:6379/0 {path}",
        "postgres://app:${DB_PASSWORD}@db/shop", f"https://cdn.example.com/{make.text(32, HEX)}/app.js", f"mailto:me@example.com?subject={path}", f"secret: https://vault.example.com/v1/{path}7",
    )  # fmt: skip


def _version(make: Maker) -> str:
    version = ".".join(str(make.random.randrange(40)) for _ in range(3)) + make.one_of("", "-rc.1", ".dev0+g1a2b3c4", "-beta.12", "+build.77")
    return make.one_of(f"v{version}", f"token-service: {version}", f"python {version}", f"js-tokens@{version}", f'"js-tokens": "^{version}"', f"tokenizers>={version}", f"password-hash=={version}", f"secret-scanner:{version}", f"Released {version} on 2026-03-04T05:06:07Z", f"token_expires: 2026-03-0{make.random.randint(1, 9)}T05:06:07+01:00")


def _minified(make: Maker) -> str:
    short = lambda: make.text(1, string.ascii_lowercase)  # noqa: E731
    return (
        f"!function({short()}){{var {short()}={{token:{short()}.token,password:{short()}.pw2Field.value,secret:{short()}[3],key:0x{make.text(6, HEX)}}};"
        f"return {short()}.apiKey=function(){{return {short()}({make.random.randrange(999)})}},{short()}.accessToken={short()}.getAccessToken2({short()}),{short()}?{short()}:void 0}}({short()});"
        f"this.password={short()}.password2||null,Object.assign({short()},{{credentials:{short()}.credentials||\"same-origin\"}})"
    )


def _placeholder(make: Maker) -> str:
    return make.one_of(
        "GITHUB_TOKEN: ${{ secrets.GITHUB_TOKEN_2 }}", "password: ${DB_PASSWORD_2}", "API_KEY=$OTHER_KEY_2", "password=********", "token: xxxxxxxxxxxxxxxx", "api_key = os.environ['API_KEY_2']",
        "apiKey: process.env.API_KEY_V2,", 'password = "<your-password-123>"', "password: {{ vault_password_2 }}", "--password \"$PASSWORD2\"", "max_tokens: 4096, stop_token: </s>", "input_tokens=1234567890",
        "password: z.string().min(8).max(72)", "the bearer token is checked in middleware2.ts", "token type is Bearer, lifetime 3600s", "The password must have 8-72 characters.", "const [token, setToken] = useState2(null)",
        "password: Optional[str] = None", "secret: bytes32 | None = None", "Authorization: Bearer ${accessToken2}", "Authorization: Bearer <token-from-step-2>", "private_key = rsa.generate_private_key(65537, 2048)",
        "API_KEY=your-api-key-here-123", "basic authentication2 is off", "token budget: 200000", "the secret to speed is caching2ndlevel", "tokens per second: 1234.5678", "token: Token2Kind,", "password=getpass.getpass()",
        "The token is refreshed every 15min.", "password reset e-mail is sent by worker2", "a secret of type kubernetes.io/tls-v2", "token 0x1F600 is an emoji", "-p 8080:80 -u 1000:1000", "mkdir -p src/app2/parsers", "apiVersion: external-secrets.io/v1beta1",
    )  # fmt: skip


LOOK_ALIKES: dict[str, Callable[[Maker], str]] = {
    "git SHAs": _commit, "UUIDs": _identifier, "checksums": _digest, "base64 images": _image, "lock files": _lock,
    "names": _name, "paths": _path, "addresses": _address, "versions": _version, "minified code": _minified,
    "placeholders": _placeholder,
}  # fmt: skip


def secrets(seed: int, count: int) -> list[Planted]:
    """`count` texts with one secret each, all kinds in turn."""
    make = Maker(seed)
    found = []
    for kind in islice(cycle(SECRETS), count):
        text, secret = SECRETS[kind](make)
        assert secret in text, kind
        found.append(Planted(kind, text, secret))
    return found


def look_alikes(seed: int, count: int) -> list[Planted]:
    """`count` texts with nothing secret in them, all kinds in turn."""
    make = Maker(seed)
    return [Planted(kind, LOOK_ALIKES[kind](make)) for kind in islice(cycle(LOOK_ALIKES), count)]


def is_found(planted: Planted, shown: str) -> bool:
    """Whether the secret is gone from `shown`, all but a few characters of it."""
    secret = planted.secret
    shown = re.sub(r"\[redacted:[a-z-]+\]", "", shown)
    pieces = (secret[at : at + 8] for at in range(0, max(1, len(secret) - 7), 4))
    return not any(piece in shown for piece in pieces)
