"""A wide corpus: over 250 kinds of secrets in the places where they really stand, and look-alikes.

It was written before the rules that it measures. `fit(seed)` leaves out every fourth kind and the last
template of each kind; `held(seed)` has all of them, with other values. Tune on `fit`, report on `held`.

Templates use a small notation, so that no file holds anything that looks like a real secret:

    ⟨A36⟩   36 random characters; the letter names the alphabet (see `ALPHABETS`)
    ⟨P⟩     a made value (see `_value`)
    ⟦…⟧     the secret
    ·       nothing; it stands inside prefixes that scanners of repositories look for
"""

from __future__ import annotations

import base64
import re
import string
from collections.abc import Iterator

from tests.privacy.secrets_made import BASE64, HEX, URL_SAFE, Maker, Planted, look_alikes

ALPHABETS = {
    "A": string.ascii_letters + string.digits, "B": BASE64, "D": string.digits, "H": HEX,
    "L": string.ascii_lowercase + string.digits, "U": string.ascii_uppercase + string.digits, "W": URL_SAFE,
    "X": "0123456789ABCDEF", "Z": string.ascii_uppercase, "a": string.ascii_lowercase,
    "3": string.ascii_uppercase + "234567",
}  # fmt: skip
_HOLE = re.compile(r"⟨([A-Za-z3])(\d*)⟩")
_SECRET = re.compile(r"⟦(.*?)⟧", re.DOTALL)

WHERE = (
    "⟦T⟧", "use ⟦T⟧ for now", "KEY=⟦T⟧", 'x = "⟦T⟧"', "curl -H 'X-Thing: ⟦T⟧' https://api.example.com", "(⟦T⟧)", "`⟦T⟧`",
    '{"output": "line one\\n⟦T⟧\\nline two"}', "+    value: ⟦T⟧", "    12→⟦T⟧", "- name: ⟦T⟧,", "https://example.com/cb?t=⟦T⟧&x=1", "<b>⟦T⟧</b>",
)  # fmt: skip
"""Where a token that has a form of its own may stand."""

COLORED = (
    "\x1b[32m⟦T⟧\x1b[0m", "\x1b[1;33mtoken\x1b[0m ⟦T⟧", "\x1b[38;5;196m⟦T⟧", "key:\x1b[K ⟦T⟧\x1b[m", "\x9b32m⟦T⟧\x9b0m",
    "\x1b]8;;https://example.com\x07⟦T⟧\x1b]8;;\x07", "a\u200b⟦T⟧", "\u202e⟦T⟧\u202c", "\x1b(B⟦T⟧\x0f", "\x1bP1$r0m\x1b\\⟦T⟧", "\ufeff⟦T⟧", "\r\x1b[2K⟦T⟧",
)  # fmt: skip

FORMS = {
    "anthropic": "sk·-ant-api03-⟨W93⟩AA", "anthropic admin": "sk·-ant-admin01-⟨W93⟩AA", "anthropic oauth": "sk·-ant-oat01-⟨W93⟩AA",
    "openai": "sk·-⟨A20⟩T3Blbk·FJ⟨A20⟩", "openai project": "sk·-proj-⟨W74⟩T3Blbk·FJ⟨W74⟩", "openai service": "sk·-svcacct-⟨W58⟩T3Blbk·FJ⟨W58⟩",
    "openrouter": "sk·-or-v1-⟨H64⟩", "aws id": "AK·IA⟨316⟩", "aws temporary id": "AS·IA⟨316⟩", "google api": "AI·za⟨W35⟩", "google client": "GOC·SPX-⟨W28⟩",
    "google oauth": "ya·29.⟨W120⟩", "github classic": "gh·p_⟨A36⟩", "github oauth": "gh·o_⟨A36⟩", "github app": "gh·s_⟨A36⟩", "github user": "gh·u_⟨A36⟩",
    "github refresh": "gh·r_⟨A76⟩", "github fine": "github·_pat_⟨A22⟩_⟨A59⟩", "gitlab": "gl·pat-⟨W20⟩", "gitlab routable": "gl·pat-⟨W27⟩.01.⟨L9⟩",
    "gitlab runner": "gl·rt-⟨W20⟩", "gitlab trigger": "gl·ptt-⟨H40⟩", "gitlab job": "gl·cbt-⟨A2⟩_⟨W20⟩", "gitlab deploy": "gl·dt-⟨W20⟩",
    "slack bot": "xo·xb-⟨D12⟩-⟨D13⟩-⟨A24⟩", "slack user": "xo·xp-⟨D12⟩-⟨D12⟩-⟨D13⟩-⟨H32⟩", "slack app": "xa·pp-1-A⟨U10⟩-⟨D13⟩-⟨H64⟩",
    "slack refresh": "xo·xe-1-⟨A146⟩", "slack webhook": "https://hooks.slack.com/services/T⟨U9⟩/B⟨U10⟩/⟨A24⟩",
    "stripe": "sk·_live_⟨A24⟩", "stripe long": "sk·_live_⟨A99⟩", "stripe restricted": "rk·_live_⟨A24⟩", "stripe test": "sk·_test_⟨A24⟩", "stripe webhook": "wh·sec_⟨A32⟩",
    "npm": "np·m_⟨A36⟩", "pypi": "py·pi-AgEIcHlwaS5vcmc⟨W120⟩", "huggingface": "h·f_⟨A34⟩", "sendgrid": "S·G.⟨W22⟩.⟨W43⟩", "twilio": "S·K⟨H32⟩",
    "mailgun": "ke·y-⟨H32⟩", "mailgun signing": "⟨H32⟩-⟨H8⟩-⟨H8⟩", "digitalocean": "do·p_v1_⟨H64⟩", "discord webhook": "https://discord.com/api/webhooks/⟨D18⟩/⟨W68⟩",
    "discord bot": "M⟨A25⟩.⟨W6⟩.⟨W38⟩", "telegram": "⟨D10⟩:AA⟨W33⟩", "databricks": "da·pi⟨H32⟩", "vault": "hv·s.⟨W95⟩", "vault batch": "hv·b.⟨W140⟩",
    "doppler": "dp·.pt.⟨A43⟩", "doppler service": "dp·.st.prod.⟨A43⟩", "linear": "lin·_api_⟨A40⟩", "notion": "nt·n_⟨D11⟩⟨A35⟩", "notion old": "sec·ret_⟨A43⟩",
    "sentry": "sntry·u_⟨H64⟩", "sentry org": "sntry·s_eyJpYXQiO⟨A120⟩_⟨A43⟩", "shopify": "shp·at_⟨H32⟩", "shopify shared": "shp·ss_⟨H32⟩", "groq": "gs·k_⟨A52⟩",
    "xai": "xa·i-⟨A80⟩", "perplexity": "pp·lx-⟨A48⟩", "replicate": "r·8_⟨A37⟩", "figma": "fi·gd_⟨W40⟩", "grafana": "gl·sa_⟨A32⟩_⟨H8⟩", "grafana cloud": "gl·c_⟨B80⟩=",
    "atlassian": "ATA·TT3xFfGF0⟨W160⟩=⟨X8⟩", "newrelic": "NR·AK-⟨U27⟩", "docker": "dckr·_pat_⟨W27⟩", "tailscale": "tsk·ey-auth-⟨A12⟩CNTRL-⟨A32⟩", "supabase": "sb·p_⟨H40⟩",
    "postman": "PM·AK-⟨H24⟩-⟨H34⟩", "memkit": "memkit·_key_⟨A43⟩", "age": "AGE-SEC·RET-KEY-1⟨U58⟩", "rubygems": "ruby·gems_⟨H48⟩", "pulumi": "pu·l-⟨H40⟩", "terraform": "⟨A14⟩.atlas·v1.⟨W67⟩",
    "jwt": "ey·JhbGciOiJIUzI1NiJ9.ey·JzdWIiOiIxMjM0NSJ9.⟨W43⟩", "azure client": "⟨A3⟩8Q~⟨W34⟩",
}  # fmt: skip

PROVIDERS = {
    "1password": "ops·_eyJ⟨B280⟩", "1password key": "A3-⟨U6⟩-⟨U6⟩-⟨U5⟩-⟨U5⟩-⟨U5⟩-⟨U5⟩", "adobe": "p8·e-⟨L32⟩", "airtable": "pa·t⟨A14⟩.⟨H64⟩", "alibaba": "LT·AI⟨A20⟩",
    "artifactory": "AK·Cp⟨A69⟩", "artifactory reference": "cm·Vmd⟨A59⟩", "bedrock": "AB·SK⟨B130⟩", "brevo": "xkey·sib-⟨H64⟩-⟨A16⟩", "buildkite": "bk·ua_⟨H40⟩",
    "clojars": "CLO·JARS_⟨L60⟩", "cloudflare origin": "v1·.0-⟨H24⟩-⟨H146⟩", "clickhouse": "4b1·d⟨A38⟩", "contentful": "CF·PAT-⟨W43⟩", "duffel": "duf·fel_live_⟨W43⟩",
    "dynatrace": "dt0·c01.⟨U24⟩.⟨U64⟩", "easypost": "EZ·AK⟨A54⟩", "elevenlabs": "sk·_⟨H48⟩", "facebook": "EA·AC⟨A150⟩", "firebase": "AA·AA⟨W7⟩:APA91b⟨W134⟩",
    "flutterwave": "FLW·SECK-⟨H32⟩-X", "fly": "fm·2_⟨B120⟩", "frameio": "fi·o-u-⟨W64⟩", "gitlab old runner": "GR13·48941⟨W20⟩", "gocardless": "live_⟨A40⟩ for GoCardless",
    "harness": "pa·t.⟨W22⟩.⟨A24⟩.⟨A20⟩", "heroku": "HR·KU-AA⟨W58⟩", "infracost": "ic·o-⟨A32⟩", "instagram": "IG·QV⟨W150⟩", "intercom": "dG9r·OmM⟨A50⟩=",
    "jwt base64": "ZX·lKaGJHY2lPaUpJVXpJMU5pSjkuZXlKemRXSWlPaUp⟨A80⟩", "lob": "live·_pub_⟨H31⟩", "mailchimp": "⟨H32⟩-us14", "mapbox": "s·k.eyJ1Ijoi⟨A50⟩.⟨W22⟩",
    "maxmind": "⟨A6⟩_⟨A29⟩_mmk", "microsoft teams": "https://acme.webhook.office.com/webhookb2/⟨H8⟩-⟨H4⟩-⟨H4⟩-⟨H4⟩-⟨H12⟩@⟨H8⟩-⟨H4⟩-⟨H4⟩-⟨H4⟩-⟨H12⟩/IncomingWebhook/⟨H32⟩/⟨H8⟩-⟨H4⟩-⟨H4⟩-⟨H4⟩-⟨H12⟩",
    "netlify": "nf·p_⟨A36⟩", "nuget": "oy2⟨L43⟩", "nvidia": "nv·api-⟨W64⟩", "octopus": "API-⟨U26⟩", "openshift": "sha·256~⟨W43⟩", "planetscale": "psc·ale_tkn_⟨W43⟩",
    "planetscale password": "psc·ale_pw_⟨W43⟩", "prefect": "pn·u_⟨A36⟩", "posthog": "ph·x_⟨A43⟩", "plaid": "access-·production-⟨H8⟩-⟨H4⟩-⟨H4⟩-⟨H4⟩-⟨H12⟩", "readme": "rd·me_⟨L70⟩", "resend": "re·_⟨A8⟩_⟨A24⟩",
    "scalingo": "tk·-us-⟨W48⟩", "segment": "sg·p_⟨H40⟩", "settlemint": "sm·_pat_⟨A16⟩", "shippo": "ship·po_live_⟨H40⟩", "sonar": "sq·u_⟨H40⟩", "square": "sq·0atp-⟨W22⟩",
    "square access": "EA·AAE⟨W59⟩", "typeform": "tf·p_⟨W44⟩_⟨A14⟩", "vercel": "vc·p_⟨A56⟩", "yandex": "AQ·VN⟨W36⟩", "yandex iam": "t1·.9eu⟨W80⟩.⟨W86⟩", "zapier webhook": "https://hooks.zapier.com/hooks/catch/⟨D7⟩/⟨L7⟩/",
    "langsmith": "lsv2·_pt_⟨H32⟩_⟨H10⟩", "langfuse": "sk·-lf-⟨H8⟩-⟨H4⟩-⟨H4⟩-⟨H4⟩-⟨H12⟩", "deepseek": "sk·-⟨H32⟩", "cohere-like": "co_⟨A40⟩", "fireworks": "fw·_⟨A24⟩", "tavily": "tv·ly-dev-⟨A32⟩", "pinecone": "pc·sk_⟨A6⟩_⟨A63⟩",
    "neon": "na·pi_⟨L64⟩", "upstash-like": "AX⟨A40⟩ASQg⟨A30⟩==", "workos": "sk·_live_⟨W60⟩", "clerk": "sk·_live_⟨A40⟩", "cursor": "key·_⟨H64⟩", "asana": "2/1⟨D15⟩/1⟨D15⟩:⟨H32⟩", "trello": "ATT·A⟨H64⟩⟨X8⟩",
    "confluent": "cf·lt⟨B60⟩", "databento": "db·-⟨A29⟩", "hubspot": "pa·t-na1-⟨H8⟩-⟨H4⟩-⟨H4⟩-⟨H4⟩-⟨H12⟩", "launchdarkly": "sd·k-⟨H8⟩-⟨H4⟩-⟨H4⟩-⟨H4⟩-⟨H12⟩",
    "mercury": "secret-token:mercury_production_rma_⟨A40⟩_yrucrem", "ngrok": "2⟨A26⟩_⟨A21⟩", "okta": "00⟨W40⟩ as the SSWS token", "paystack": "sk·_live_⟨H40⟩", "razorpay": "rz·p_live_⟨A14⟩", "sumologic": "su⟨A12⟩ and ⟨A64⟩",
    "svix": "wh·sec_⟨B32⟩", "temporal-like": "tmp·rl_⟨A43⟩", "unkey": "un·key_⟨A24⟩", "wakatime": "wa·ka_⟨H8⟩-⟨H4⟩-⟨H4⟩-⟨H4⟩-⟨H12⟩", "zuplo": "zp·ka_⟨H32⟩_⟨H8⟩", "acme": "acme_live_⟨A32⟩", "acme token": "acmetok-⟨A40⟩",
}  # fmt: skip

NAMED: dict[str, tuple[str, ...]] = {
    # Plain assignments
    "env file": ("DB_PASSWORD=⟦⟨P⟩⟧", "API_KEY=⟦⟨K⟩⟧\nDEBUG=1", "export SESSION_TOKEN=⟦⟨K⟩⟧", "STRIPE_WEBHOOK_SECRET='⟦⟨K⟩⟧'", "SMTP_PASS=\"⟦⟨P⟩⟧\""),
    "short names": ("PASS=⟦⟨P⟩⟧", "pw: ⟦⟨P⟩⟧", 'pwd = "⟦⟨P⟩⟧"', "DB_PW=⟦⟨P⟩⟧", "MYSQL_PWD=⟦⟨P⟩⟧", "psw = '⟦⟨P⟩⟧'", "KEY=⟦⟨A40⟩⟧"),
    "ini": ("[db]\nuser = app\npassword = ⟦⟨P⟩⟧\n", "[client]\npassword=⟦⟨P⟩⟧", "password : ⟦⟨P⟩⟧"),
    "properties": ("spring.datasource.password=⟦⟨P⟩⟧", "db.password: ⟦⟨P⟩⟧", "ssl.keystore.password = ⟦⟨P⟩⟧"),
    "toml": ('api_key = "⟦⟨K⟩⟧"', 'db = { user = "app", password = "⟦⟨P⟩⟧" }', "secret = '''⟦⟨K⟩⟧'''", '[auth]\njwt-secret = "⟦⟨K⟩⟧"'),
    "yaml": ("db:\n  password: ⟦⟨P⟩⟧\n  port: 5", "apiKey: '⟦⟨K⟩⟧'", '- secretKey: "⟦⟨K⟩⟧"', "auth: {user: app, password: ⟦⟨K⟩⟧}", "password: !!str ⟦⟨P⟩⟧"),
    "yaml block": ("password: |\n  ⟦⟨P⟩⟧\nuser: a", "api_key: >-\n    ⟦⟨K⟩⟧\n", "client_secret: |-\n      ⟦⟨K⟩⟧", "token:\n  ⟦⟨K⟩⟧", "secret: |\n  ⟦⟨P⟩⟧"),
    "yaml pair": ("- name: DB_PASSWORD\n  value: ⟦⟨P⟩⟧", '        - name: API_TOKEN\n          value: "⟦⟨K⟩⟧"', "env:\n- name: JWT_SECRET\n  value: '⟦⟨K⟩⟧'\n- name: PORT\n  value: '80'", "- value: ⟦⟨P⟩⟧\n  name: DB_PASSWORD"),
    "json": ('{"password": "⟦⟨P⟩⟧"}', '{"user":"a","apiKey":"⟦⟨K⟩⟧","n":1}', '"client_secret" : "⟦⟨K⟩⟧",', '{\n  "refreshToken": "⟦⟨K⟩⟧"\n}', '{"accessToken":"⟦⟨K⟩⟧"}'),
    "json pair": ('{"name": "DB_PASSWORD", "value": "⟦⟨P⟩⟧"}', '[{"Name":"API_KEY","Value":"⟦⟨K⟩⟧"}]', '{"key": "client_secret", "value": "⟦⟨K⟩⟧", "type": "text"}', '{"value": "⟦⟨K⟩⟧", "name": "AUTH_TOKEN"}'),
    "json escaped": ('"{\\"password\\": \\"⟦⟨P⟩⟧\\"}"', '{"body": "{\\"api_key\\":\\"⟦⟨K⟩⟧\\"}"}', "{\\\"client_secret\\\":\\\"⟦⟨K⟩⟧\\\"}"),
    "json escaped twice": ('"{\\\\\\"password\\\\\\": \\\\\\"⟦⟨P⟩⟧\\\\\\"}"', '{\\\\\\"token\\\\\\":\\\\\\"⟦⟨K⟩⟧\\\\\\"}', '\\\\\\"apiKey\\\\\\" : \\\\\\"⟦⟨K⟩⟧\\\\\\"'),
    "python": ('password: str = "⟦⟨P⟩⟧"', "connect(host='db', password='⟦⟨P⟩⟧')", 'os.environ["API_KEY"] = "⟦⟨K⟩⟧"', "{'secret_key': '⟦⟨K⟩⟧'}", 'token = b"⟦⟨K⟩⟧"', 'API_TOKEN = os.getenv("API_TOKEN", "⟦⟨K⟩⟧")', 'requests.get(u, auth=("admin", "⟦⟨P⟩⟧"))'),
    "javascript": ("const apiKey = '⟦⟨K⟩⟧';", "process.env.JWT_SECRET = '⟦⟨K⟩⟧'", "{ password: `⟦⟨P⟩⟧` }", 'headers: { "x-api-key": "⟦⟨K⟩⟧" }', 'const token = process.env.TOKEN || "⟦⟨K⟩⟧"', "localStorage.setItem('access_token', '⟦⟨K⟩⟧')"),
    "php": ("'password' => '⟦⟨P⟩⟧',", "define('DB_PASSWORD', '⟦⟨P⟩⟧');", "$password = '⟦⟨P⟩⟧';", "$cfg['blowfish_secret'] = '⟦⟨K⟩⟧';"),
    "ruby": ("password: '⟦⟨P⟩⟧'", ':password => "⟦⟨P⟩⟧"', "config.secret_key_base = '⟦⟨H128⟩⟧'", 'ENV["API_KEY"] ||= "⟦⟨K⟩⟧"'),
    "java": ('client.setPassword("⟦⟨P⟩⟧");', 'private static final String API_KEY = "⟦⟨K⟩⟧";', 'props.put("password", "⟦⟨P⟩⟧");', '.withClientSecret("⟦⟨K⟩⟧")', "User(name=bob, password=⟦⟨P⟩⟧, age=3)"),
    "go": ('Password: "⟦⟨P⟩⟧",', 'token := "⟦⟨K⟩⟧"', 'os.Setenv("API_KEY", "⟦⟨K⟩⟧")', "{User:admin Password:⟦⟨K⟩⟧ Host:db}"),
    "c#": ('Password = "⟦⟨P⟩⟧";', 'new NetworkCredential("admin", "⟦⟨P⟩⟧")', '<add key="ApiSecret" value="⟦⟨K⟩⟧" />', '"ConnectionStrings": {"Db": "Server=db;User Id=sa;Password=⟦⟨P⟩⟧;"}'),
    "rust": ('let api_key = "⟦⟨K⟩⟧";', 'password: Some("⟦⟨P⟩⟧".to_string()),', 'const SECRET: &str = "⟦⟨K⟩⟧";', 'token: "⟦⟨K⟩⟧".into(),'),
    "shell": ("read -r TOKEN <<< '⟦⟨K⟩⟧'", "PASSWORD='⟦⟨P⟩⟧' ./run.sh", "local db_pass=\"⟦⟨P⟩⟧\"", ': "${API_TOKEN:=⟦⟨K⟩⟧}"', "setenv API_TOKEN ⟦⟨K⟩⟧", "set -gx API_TOKEN ⟦⟨K⟩⟧", "declare -x DB_PASSWORD=\"⟦⟨P⟩⟧\""),
    "powershell": ('$env:API_KEY = "⟦⟨K⟩⟧"', '$password = ConvertTo-SecureString "⟦⟨P⟩⟧" -AsPlainText -Force', "Set-Item env:TOKEN '⟦⟨K⟩⟧'", "setx DB_PASSWORD ⟦⟨P⟩⟧", "-Credential admin -Password '⟦⟨P⟩⟧'"),
    "docker": ("ENV DB_PASSWORD=⟦⟨P⟩⟧", "ENV API_KEY ⟦⟨K⟩⟧", "docker run -e POSTGRES_PASSWORD=⟦⟨P⟩⟧ postgres", "      - MYSQL_ROOT_PASSWORD=⟦⟨P⟩⟧", '"Env": ["REDIS_PASSWORD=⟦⟨P⟩⟧", "A=b"]', "ARG NPM_TOKEN=⟦⟨K⟩⟧"),
    "terraform": ('password = "⟦⟨P⟩⟧"', 'variable "db_password" {\n  default = "⟦⟨P⟩⟧"\n}', 'TF_VAR_admin_password=⟦⟨P⟩⟧', 'db_password = "⟦⟨P⟩⟧"', '  + master_password = "⟦⟨P⟩⟧"'),
    "kubernetes secret": ("kind: Secret\ndata:\n  password: ⟦⟨Y⟩⟧", "stringData:\n  api-token: ⟦⟨K⟩⟧", "  .dockerconfigjson: ⟦⟨J⟩⟧", "kubectl create secret generic db --from-literal=password=⟦⟨P⟩⟧", '"data":{"password":"⟦⟨Y⟩⟧"}'),
    "kubeconfig": ("    client-key-data: ⟦⟨B400⟩⟧=", "    token: ⟦⟨K⟩⟧", '"client-key-data": "⟦⟨B300⟩⟧=="'),
    "ansible": ("ansible_ssh_pass=⟦⟨P⟩⟧", "ansible_become_password: ⟦⟨P⟩⟧", 'ansible-playbook -e "db_password=⟦⟨P⟩⟧" site.yml', "host1 ansible_user=root ansible_password=⟦⟨P⟩⟧"),
    "xml": ("<password>⟦⟨P⟩⟧</password>", '<user name="a" password="⟦⟨P⟩⟧"/>', "<ApiKey>⟦⟨K⟩⟧</ApiKey>", '<property name="password" value="⟦⟨P⟩⟧"/>', '<wsse:Password Type="x#PasswordText">⟦⟨P⟩⟧</wsse:Password>', "<key>Password</key>\n\t<string>⟦⟨P⟩⟧</string>", "<secret><![CDATA[⟦⟨P⟩⟧]]></secret>"),
    "registry": ('"Password"="⟦⟨P⟩⟧"', "    DefaultPassword    REG_SZ    ⟦⟨P⟩⟧", 'reg add X /v DefaultPassword /t REG_SZ /d "⟦⟨P⟩⟧"'),
    "symbol first": ('password = "$⟦⟨A14⟩9!⟧"', "secret: '%⟦⟨A15⟩7⟧'", 'PASSWORD="{⟦⟨A13⟩4#⟧"', 'db_password: "(⟦⟨A14⟩2⟧"', '"password": "@⟦⟨A15⟩5⟧"', "token='&⟦⟨A18⟩3⟧'", 'pass_phrase = "<⟦⟨A16⟩8⟧"'),
    "words and digits": ("password: ⟦⟨Q⟩⟧", 'DB_PASSWORD="⟦⟨Q⟩⟧"', '"password":"⟦⟨Q⟩⟧"', "MYSQL_ROOT_PASSWORD=⟦⟨Q⟩⟧"),
    "git diff": ("-password = old\n+password = ⟦⟨P⟩⟧", "+  api_key: ⟦⟨K⟩⟧", "+DB_PASSWORD=⟦⟨P⟩⟧", "-SECRET_KEY = '⟦⟨K⟩⟧'"),
    "grep output": ("src/a.py:12:password = '⟦⟨P⟩⟧'", ".env:3:API_TOKEN=⟦⟨K⟩⟧", "    14→  password: ⟦⟨P⟩⟧", "./conf/app.ini-password=⟦⟨P⟩⟧"),
    "log line": ('level=info msg=login user=a password=⟦⟨P⟩⟧', "2026-01-02 10:00:00 DEBUG token=⟦⟨K⟩⟧ ok", "[auth] using api key: ⟦⟨K⟩⟧", "Generated password: ⟦⟨P⟩⟧", "Your new token is: ⟦⟨K⟩⟧", "INFO  Temporary password for root@localhost: ⟦⟨P⟩⟧"),
    "crypto names": ("encryption_key: ⟦⟨B43⟩=⟧", "SIGNING_KEY=⟦⟨H64⟩⟧", "hmac_key = '⟦⟨H64⟩⟧'", "aes_key: ⟦⟨H32⟩⟧", "FERNET_KEY=⟦⟨W43⟩=⟧", "master-key: ⟦⟨H64⟩⟧", "salt_key = '⟦⟨K⟩⟧'", "private_key=0x⟦⟨H64⟩⟧", "APP_KEY=base64:⟦⟨B43⟩=⟧"),
    "provider names": ("DATADOG_APP_KEY=⟦⟨H40⟩⟧", "algolia_admin_key: ⟦⟨H32⟩⟧", "CLOUDFLARE_API_KEY=⟦⟨H37⟩⟧", "MAILJET_SECRET_KEY=⟦⟨H32⟩⟧", "twitter consumer_secret = '⟦⟨A50⟩⟧'", "heroku_key: ⟦⟨H8⟩-⟨H4⟩-⟨H4⟩-⟨H4⟩-⟨H12⟩⟧", "AZURE_STORAGE_KEY=⟦⟨B86⟩==⟧", "FASTLY_KEY=⟦⟨W32⟩⟧"),
    "dead-store names": ("storePassword=⟦⟨P⟩⟧", "keyPassword '⟦⟨P⟩⟧'", "keystorePass=\"⟦⟨P⟩⟧\"", "javax.net.ssl.trustStorePassword=⟦⟨P⟩⟧"),
    # Services
    "redis": ("requirepass ⟦⟨P⟩⟧", "masterauth ⟦⟨K⟩⟧", "AUTH default ⟦⟨K⟩⟧", "CONFIG SET requirepass ⟦⟨P⟩⟧", "user app on >⟦⟨P⟩⟧ ~* +@all"),
    "ldap": ("bindpw ⟦⟨P⟩⟧", "rootpw ⟦⟨P⟩⟧", "ldap_default_authtok = ⟦⟨P⟩⟧", "userPassword: ⟦⟨P⟩⟧", "bind_password: ⟦⟨P⟩⟧", "olcRootPW: ⟦⟨P⟩⟧"),
    "wifi": ('psk="⟦⟨P⟩⟧"', "wpa_passphrase=⟦⟨P⟩⟧", "psk=⟦⟨H64⟩⟧", "WIFI:T:WPA;S:home;P:⟦⟨P⟩⟧;;", "wifi.psk ⟦⟨P⟩⟧"),
    "vpn": (': PSK "⟦⟨P⟩⟧"', "PrivateKey = ⟦⟨B43⟩=⟧", "PresharedKey = ⟦⟨B43⟩=⟧", "pre-shared-key ⟦⟨P⟩⟧", "secret = ⟦⟨P⟩⟧"),
    "network devices": ("enable secret 5 ⟦$1$⟨A4⟩$⟨B22⟩⟧", "username admin password 7 ⟦⟨X22⟩⟧", "snmp-server community ⟦⟨P⟩⟧ RO", "tacacs-server key ⟦⟨P⟩⟧"),
    "netrc": ("machine example.com login me password ⟦⟨P⟩⟧", "machine h\n  login u\n  password ⟦⟨K⟩⟧\n"),
    "pgpass": ("db.example.com:5432:shop:app:⟦⟨P⟩⟧", "*:*:*:postgres:⟦⟨P⟩⟧", "localhost:5432:*:app:⟦⟨A20⟩⟧"),
    "npmrc": ("//registry.example.com/:_authToken=⟦⟨H8⟩-⟨H4⟩-⟨H4⟩-⟨H4⟩-⟨H12⟩⟧", "//npm.example.com/:_password=⟦⟨Y⟩⟧", "_auth=⟦⟨V⟩⟧"),
    "connection string": ("Server=db;Database=x;User Id=sa;Password=⟦⟨P⟩⟧;", "Data Source=db;Uid=sa;Pwd=⟦⟨K⟩⟧;", "host=db user=app password=⟦⟨P⟩⟧ dbname=x", "jdbc:mysql://db/x?user=app&password=⟦⟨K⟩⟧", "AccountName=a;AccountKey=⟦⟨B86⟩==⟧;", "Endpoint=sb://x/;SharedAccessKeyName=R;SharedAccessKey=⟦⟨B43⟩=⟧"),
    "url password": ("postgres://app:⟦⟨A16⟩⟧@db:5432/x", "https://me:⟦⟨A20⟩⟧@git.example.com/a.git", "redis://:⟦⟨A18⟩⟧@cache:6379", "mongodb+srv://u:⟦⟨A15⟩%21⟧@c.example.net/x", "amqp://guest:⟦⟨A14⟩⟧@mq//", "cloudinary://⟨D15⟩:⟦⟨W27⟩⟧@acme", "ftp://u:⟦⟨A14⟩⟧@files.example.com"),
    "url query": ("https://api.example.com/v1?api_key=⟦⟨K⟩⟧&page=2", "GET /cb?access_token=⟦⟨K⟩⟧ HTTP/1.1", "?token=⟦⟨K⟩⟧", "username=a&password=⟦⟨K⟩⟧&x=1", "https://x.example.com/?key=⟦⟨A40⟩⟧", "wss://x/?auth=⟦⟨A40⟩⟧", "&client_secret=⟦⟨K⟩⟧"),
    "otp": ("otpauth://totp/Acme:bob?secret=⟦⟨332⟩⟧&issuer=Acme", "TOTP secret: ⟦⟨332⟩⟧", "mfa_secret=⟦⟨316⟩⟧"),
    "smtp": ("smtp_password: ⟦⟨P⟩⟧", "smtp://me%40x.com:⟦⟨A16⟩⟧@smtp.example.com:587", "MAIL_PASSWORD=⟦⟨a4⟩ ⟨a4⟩ ⟨a4⟩ ⟨a4⟩⟧", "relayhost user:⟦⟨P⟩⟧ in sasl_passwd"),
    "vault output": ("Unseal Key 1: ⟦⟨B43⟩=⟧", "Initial Root Token: ⟦s.⟨A24⟩⟧", "Recovery Key 2: ⟦⟨B44⟩⟧", "token                ⟦s.⟨A24⟩⟧", "secret_id            ⟦⟨H8⟩-⟨H4⟩-⟨H4⟩-⟨H4⟩-⟨H12⟩⟧"),
    "cloud output": ('"SecretAccessKey": "⟦⟨B40⟩⟧"', '"SessionToken": "⟦⟨B200⟩⟧=="', '"clientSecret": "⟦⟨A3⟩~⟨W36⟩⟧"', '"primaryKey": "⟦⟨B86⟩==⟧"', "aws_session_token = ⟦⟨B160⟩⟧", '"keyValue": "⟦⟨A40⟩⟧",\n "keyName": "api-key"', '"primaryConnectionString": "Endpoint=sb://a/;SharedAccessKey=⟦⟨B43⟩=⟧"'),
    # Headers and cookies
    "api key header": ("X-Api-Key: ⟦⟨K⟩⟧", "-H 'X-Auth-Token: ⟦⟨K⟩⟧'", "Ocp-Apim-Subscription-Key: ⟦⟨H32⟩⟧", "x-functions-key: ⟦⟨W54⟩⟧", "apikey: ⟦⟨K⟩⟧", "CF-Access-Client-Secret: ⟦⟨H64⟩⟧", "X-Vault-Token: ⟦⟨K⟩⟧", "DD-APPLICATION-KEY: ⟦⟨H40⟩⟧", "X-Hub-Signature-Key: ⟦⟨K⟩⟧"),
    "authorization": ("Authorization: Bearer ⟦⟨A40⟩⟧", "authorization: token ⟦⟨A40⟩⟧", "Proxy-Authorization: Basic ⟦⟨V⟩⟧", "Authorization: ApiKey ⟦⟨A40⟩⟧", '"Authorization": "Bearer ⟦⟨A40⟩⟧"', "Authorization: SSWS ⟦⟨A42⟩⟧", "Authorization: ⟦⟨A40⟩⟧", "Authorization: Digest username=\"a\", response=\"⟦⟨H32⟩⟧\"", "Authorization: GenieKey ⟦⟨H8⟩-⟨H4⟩-⟨H4⟩-⟨H4⟩-⟨H12⟩⟧", "Authorization: AWS4-HMAC-SHA256 Credential=x/y, Signature=⟦⟨H64⟩⟧"),
    "cookie": ("Cookie: session=⟦⟨A32⟩⟧; theme=dark", "Set-Cookie: sid=⟦⟨A40⟩⟧; Path=/; HttpOnly", "cookie: lang=en; sessionid=⟦⟨L32⟩⟧", "curl -b 'session=⟦⟨A40⟩⟧' https://x", "document.cookie = 'auth=⟦⟨A40⟩⟧'", "--cookie \"connect.sid=s%3A⟦⟨A32⟩⟧.⟨A43⟩\"", '"cookie": "a=b; SSID=⟦⟨A40⟩⟧"', "Cookie: _app_session=⟦⟨B120⟩⟧--⟨H40⟩"),
    "session id": ("JSESSIONID=⟦⟨X32⟩⟧", "PHPSESSID=⟦⟨L26⟩⟧", "ASP.NET_SessionId=⟦⟨L24⟩⟧", "laravel_session=⟦⟨A200⟩⟧", "session_cookie: ⟦⟨A40⟩⟧", "csrftoken=⟦⟨A64⟩⟧", "XSRF-TOKEN=⟦⟨A64⟩⟧", "_gitlab_session=⟦⟨H32⟩⟧"),
    # SQL
    "sql user": ("CREATE USER app IDENTIFIED BY '⟦⟨P⟩⟧';", "CREATE USER app WITH PASSWORD '⟦⟨P⟩⟧';", "ALTER ROLE app PASSWORD '⟦⟨P⟩⟧'", "GRANT ALL ON x.* TO 'a'@'%' IDENTIFIED BY '⟦⟨P⟩⟧'", "CREATE LOGIN sa WITH PASSWORD = '⟦⟨P⟩⟧'", "ALTER USER 'root'@'localhost' IDENTIFIED WITH mysql_native_password BY '⟦⟨P⟩⟧';", "CREATE USER app WITH ENCRYPTED PASSWORD '⟦⟨P⟩⟧'", 'ALTER USER scott IDENTIFIED BY "⟦⟨P⟩⟧"'),
    "sql data": ("UPDATE users SET password = '⟦⟨P⟩⟧' WHERE id = 1", "INSERT INTO users (name, password) VALUES ('bob', '⟦⟨P⟩⟧')", "SET PASSWORD FOR 'a'@'b' = PASSWORD('⟦⟨P⟩⟧')", "SELECT * FROM users WHERE password='⟦⟨P⟩⟧'", "INSERT INTO api_keys (id, api_key, owner) VALUES (1, '⟦⟨K⟩⟧', 'bob');", "INSERT INTO settings (name, value) VALUES ('smtp_password', '⟦⟨P⟩⟧')"),
    "sql functions": ("pgp_sym_encrypt(x, '⟦⟨P⟩⟧')", "AES_DECRYPT(col, '⟦⟨P⟩⟧')", "crypt('⟦⟨P⟩⟧', gen_salt('bf'))", "dblink('host=h password=⟦⟨P⟩⟧')", "MASTER_PASSWORD='⟦⟨P⟩⟧'"),
    # Options of commands
    "long option": ("app --password ⟦⟨R⟩⟧ run", "app --token=⟦⟨K⟩⟧", "app --api-key '⟦⟨K⟩⟧'", "x --client-secret \"⟦⟨K⟩⟧\"", "gpg --passphrase ⟦⟨R⟩⟧ -d f", "app --secret ⟦⟨K⟩⟧", "wget --http-password=⟦⟨R⟩⟧ https://x", "keytool -storepass ⟦⟨R⟩⟧ -list", "jarsigner -keypass ⟦⟨R⟩⟧ a.jar"),
    "openssl": ("openssl rsa -in k.pem -passin pass:⟦⟨R⟩⟧", "openssl pkcs12 -export -passout pass:⟦⟨R⟩⟧ -in c", "openssl enc -aes-256-cbc -k ⟦⟨R⟩⟧", "openssl enc -d -K ⟦⟨H64⟩⟧ -iv 0"),
    "archives": ("7z x a.7z -p⟦⟨R⟩⟧", "zip -P ⟦⟨R⟩⟧ a.zip f", "unzip -P '⟦⟨R⟩⟧' a.zip", "unrar x -p⟦⟨R⟩⟧ a.rar", "7za a -p'⟦⟨R⟩⟧' x.7z d"),
    "directory tools": ("ldapsearch -x -D cn=admin -w ⟦⟨R⟩⟧ -b dc=x", "smbclient //h/s -U bob%⟦⟨R⟩⟧", "ldapmodify -D cn=a -w '⟦⟨R⟩⟧' -f x", "mount -t cifs //h/s /m -o username=a,password=⟦⟨R⟩⟧", "rpcclient -U 'bob%⟦⟨R⟩⟧' host", "net use Z: \\\\h\\s ⟦⟨R⟩⟧ /user:bob"),
    "piped password": ("echo ⟦⟨R⟩⟧ | docker login -u me --password-stdin", "echo '⟦⟨R⟩⟧' | sudo -S ls", "printf '%s' '⟦⟨R⟩⟧' | gh auth login --with-token", "echo -n \"⟦⟨R⟩⟧\" | cryptsetup luksOpen /dev/sda x -", "echo 'bob:⟦⟨R⟩⟧' | chpasswd", "docker login --password-stdin <<< '⟦⟨R⟩⟧'", "echo ⟦⟨R⟩⟧ | kinit bob"),
    "database clients": ("mysql -u root -p⟦⟨R⟩⟧ shop", "mysqldump -uroot -p'⟦⟨R⟩⟧' db", "PGPASSWORD=⟦⟨R⟩⟧ psql -h db", "redis-cli -h c -a ⟦⟨R⟩⟧ ping", "mongosh -u a -p ⟦⟨R⟩⟧ --host h", "sqlcmd -S h -U sa -P ⟦⟨R⟩⟧", "sqlplus scott/⟦⟨R⟩⟧@orcl", "cqlsh h -u c -p ⟦⟨R⟩⟧", "mongodump -u a -p '⟦⟨R⟩⟧'", "bcp t out f -U sa -P ⟦⟨R⟩⟧", "clickhouse-client --user d --password ⟦⟨R⟩⟧"),
    "web clients": ("curl -u admin:⟦⟨R⟩⟧ https://x", "curl --user 'admin:⟦⟨R⟩⟧' https://x", "http -a admin:⟦⟨R⟩⟧ GET x.example.com", "wget --user=a --password=⟦⟨R⟩⟧ https://x", "curl -s -XPOST -d 'password=⟦⟨R⟩⟧' https://x", "curl -u \"admin:⟦⟨R⟩⟧\" -k https://x", "curl --proxy-user a:⟦⟨R⟩⟧ https://x", "ab -A admin:⟦⟨R⟩⟧ https://x/"),
    "remote shells": ("sshpass -p '⟦⟨R⟩⟧' ssh host", "sshpass -p⟦⟨R⟩⟧ scp a h:", "xfreerdp /u:bob /p:⟦⟨R⟩⟧ /v:h", "rdesktop -u bob -p ⟦⟨R⟩⟧ h", "lftp -u bob,⟦⟨R⟩⟧ h", "plink -pw ⟦⟨R⟩⟧ bob@h", "evil-winrm -i h -u bob -p '⟦⟨R⟩⟧'"),
    "logins": ("docker login -u me -p ⟦⟨R⟩⟧ reg.example.com", "az login --service-principal -u id -p ⟦⟨R⟩⟧ --tenant t", "vault login ⟦⟨K⟩⟧", "oc login --token=⟦⟨K⟩⟧", "helm registry login h -u a -p ⟦⟨R⟩⟧", "npm config set //r.example.com/:_authToken ⟦⟨K⟩⟧", "gh auth login --with-token <<< ⟦⟨K⟩⟧", "podman login -u a -p '⟦⟨R⟩⟧' q.example.com", "op signin --password ⟦⟨R⟩⟧"),
    "setting tools": ("aws configure set aws_secret_access_key ⟦⟨B40⟩⟧", "heroku config:set API_KEY=⟦⟨K⟩⟧", "vault kv put secret/db password=⟦⟨R⟩⟧", "helm install x --set db.password=⟦⟨R⟩⟧", "git config --global user.password ⟦⟨R⟩⟧", "gh secret set API_KEY --body '⟦⟨K⟩⟧'", "fly secrets set TOKEN=⟦⟨K⟩⟧", "wrangler secret put X <<< '⟦⟨K⟩⟧'", "pip config set global.password ⟦⟨R⟩⟧"),
    "other tools": ("mosquitto_pub -u a -P ⟦⟨R⟩⟧ -t x", "htpasswd -b f bob ⟦⟨R⟩⟧", "nmcli dev wifi connect home password ⟦⟨R⟩⟧", "wpa_passphrase home ⟦⟨R⟩⟧", "rabbitmqctl add_user bob ⟦⟨R⟩⟧", "snmpwalk -v3 -u a -A ⟦⟨R⟩⟧ -X x h", "hydra -l bob -p ⟦⟨R⟩⟧ ssh://h", "ipmitool -U a -P ⟦⟨R⟩⟧ -H h", "svn co --username a --password ⟦⟨R⟩⟧ u", "restic -r x --password-command 'echo ⟦⟨R⟩⟧'"),
    # Hashes
    "bcrypt": ("⟦$2b$12$⟨A53⟩⟧", "hash: ⟦$2y$10$⟨A53⟩⟧", "bob:⟦$2a$10$⟨A53⟩⟧"),
    "crypt": ("root:⟦$6$⟨A16⟩$⟨A86⟩⟧:19000:0:99999:7:::", "bob:⟦$1$⟨A8⟩$⟨A22⟩⟧:1000", "bob:⟦$5$⟨A16⟩$⟨A43⟩⟧:19000:0:::", "bob:⟦$y$j9T$⟨A22⟩$⟨A43⟩⟧:19000:0:99999:7:::", "bob:⟦$apr1$⟨A8⟩$⟨A22⟩⟧", "usermod -p '⟦$6$⟨A8⟩$⟨A86⟩⟧' bob"),
    "other hashes": ("⟦$argon2id$v=19$m=65536,t=3,p=4$⟨B22⟩$⟨B43⟩⟧", "⟦pbkdf2_sha256$600000$⟨A22⟩$⟨B43⟩=⟧", "⟦SCRAM-SHA-256$4096:⟨B22⟩==$⟨B43⟩=:⟨B43⟩=⟧", "userPassword: ⟦{SSHA}⟨B38⟩==⟧", "password_hash: ⟦⟨H64⟩⟧", "⟦$P$B⟨A31⟩⟧", "IDENTIFIED BY PASSWORD '⟦*⟨X40⟩⟧'", "bob:1001:aad3b435b51404eeaad3b435b51404ee:⟦⟨H32⟩⟧:::"),
    # Keys
    "pem": ("⟦⟨M⟩⟧", "  key: |\n⟦⟨N⟩⟧", 'KEY="⟦⟨O⟩⟧"'),
    "base64 of pem": ("tls.key: ⟦⟨G⟩⟧", '"key": "⟦⟨G⟩⟧"', "KEY_B64=⟦⟨G⟩⟧", "⟦⟨G⟩⟧"),
    "putty": ("PuTTY-User-Key-File-3: ssh-rsa\nEncryption: none\nPublic-Lines: 1\nAAAA\nPrivate-Lines: 2\n⟦⟨B64⟩\n⟨B40⟩⟧\nPrivate-MAC: ⟨H64⟩", "Private-Lines: 1\n⟦⟨B64⟩⟧\nPrivate-MAC: ⟨H64⟩"),
    "pem tail": ("id_rsa:⟦⟨B64⟩⟧\nid_rsa:-----END RSA PRI·VATE KEY-----", "key.pem:12:⟦⟨B64⟩⟧\nkey.pem:13:-----END PRI·VATE KEY-----", "stdout: ⟦⟨B64⟩⟧\nstdout: -----END EC PRI·VATE KEY-----"),
    "jwk": ('{"kty":"RSA","n":"⟨W342⟩","e":"AQAB","d":"⟦⟨W342⟩⟧"}', '{"kty":"EC","crv":"P-256","d":"⟦⟨W43⟩⟧","x":"⟨W43⟩"}', '{"kty":"oct","k":"⟦⟨W43⟩⟧","alg":"HS256"}'),
    "mnemonic": ("seed phrase: ⟦⟨w⟩ ⟨w⟩ ⟨w⟩ ⟨w⟩ ⟨w⟩ ⟨w⟩ ⟨w⟩ ⟨w⟩ ⟨w⟩ ⟨w⟩ ⟨w⟩ ⟨w⟩⟧", 'MNEMONIC="⟦⟨w⟩ ⟨w⟩ ⟨w⟩ ⟨w⟩ ⟨w⟩ ⟨w⟩ ⟨w⟩ ⟨w⟩ ⟨w⟩ ⟨w⟩ ⟨w⟩ ⟨w⟩⟧"'),
    "recovery codes": ("recovery code: ⟦⟨L5⟩-⟨L5⟩⟧", "backup code: ⟦⟨D4⟩-⟨L4⟩-⟨L4⟩⟧", "Recovery key: ⟦⟨D6⟩-⟨D6⟩-⟨D6⟩-⟨D6⟩-⟨D6⟩-⟨D6⟩⟧"),
    # Tables
    "markdown table": ("| user | password |\n|---|---|\n| bob | ⟦⟨P⟩⟧ |", "| Name | Value |\n|---|---|\n| API_KEY | ⟦⟨K⟩⟧ |", "| API key | ⟦⟨K⟩⟧ |", "| Service | Username | Password | Note |\n| --- | --- | --- | --- |\n| db | app | `⟦⟨P⟩⟧` | x |"),
    "html table": ("<tr><td>Password</td><td>⟦⟨P⟩⟧</td></tr>", "<table><tr><th>User</th><th>Password</th></tr><tr><td>bob</td><td>⟦⟨P⟩⟧</td></tr></table>", "<dt>API key</dt><dd>⟦⟨K⟩⟧</dd>", "<td>token</td>\n  <td><code>⟦⟨K⟩⟧</code></td>", '<input type="password" name="pw" value="⟦⟨P⟩⟧">', "<label>Password</label> <span>⟦⟨P⟩⟧</span>"),
    "csv": ("user,password\nbob,⟦⟨P⟩⟧\nann,⟦⟨P⟩⟧", "User name,Password,Access key ID,Secret access key\nbob,,AK,⟦⟨B40⟩⟧", "id;name;api_key\n1;bob;⟦⟨K⟩⟧", '"user","password"\n"bob","⟦⟨K⟩⟧"', "name\ttoken\nbob\t⟦⟨K⟩⟧", "url,username,password\nhttps://x,bob,⟦⟨P⟩⟧"),
    "text table": (" user | password \n------+----------\n bob  | ⟦⟨K⟩⟧\n", "KEY          VALUE\nAPI_KEY      ⟦⟨K⟩⟧", "Password     ⟦⟨P⟩⟧", "+------+----------------+\n| user | password       |\n+------+----------------+\n| bob  | ⟦⟨K⟩⟧ |\n+------+"),
    # Prose
    "prose is": ("the password is ⟦⟨P⟩⟧", "The admin password is: ⟦⟨P⟩⟧", "its password is now ⟦⟨P⟩⟧.", "password for the db is ⟦⟨P⟩⟧", "The password of the staging database is ⟦⟨P⟩⟧, ok?", "API key is `⟦⟨K⟩⟧`", "My secret is \"⟦⟨P⟩⟧\"", "The token we use is ⟦⟨K⟩⟧", "pw is ⟦⟨P⟩⟧", "passphrase for the key is '⟦⟨P⟩⟧'"),
    "prose orders": ("use the password ⟦⟨P⟩⟧ to log in", "log in with password ⟦⟨P⟩⟧", "please use the token `⟦⟨K⟩⟧`", "I changed the password to ⟦⟨P⟩⟧", "set the password to \"⟦⟨P⟩⟧\"", "Use ⟦⟨P⟩⟧ as the password", "log in as admin / ⟦⟨P⟩⟧", "login with bob:⟦⟨P⟩⟧", "sign in as bob with ⟦⟨P⟩⟧", "try ⟦⟨P⟩⟧ as the password"),
    "prose lists": ("- Password: ⟦⟨P⟩⟧", "**API key:** `⟦⟨K⟩⟧`", "Username: bob\nPassword: ⟦⟨P⟩⟧", "user: bob, pass: ⟦⟨P⟩⟧", "credentials: admin / ⟦⟨P⟩⟧", "creds are bob:⟦⟨P⟩⟧", "Password → ⟦⟨P⟩⟧", "password - ⟦⟨P⟩⟧", "Login: bob / ⟦⟨P⟩⟧", "Passcode: ⟦⟨P⟩⟧"),
    "prose arrows": ("password => ⟦⟨P⟩⟧", "token -> ⟦⟨K⟩⟧", "pass = ⟦⟨P⟩⟧", "password：⟦⟨P⟩⟧", "Password (root): ⟦⟨P⟩⟧", "password [default]: ⟦⟨P⟩⟧", "Enter password: ⟦⟨P⟩⟧"),
}  # fmt: skip

LANGUAGES: dict[str, tuple[str, ...]] = {
    "German": ("Das Passwort ist ⟦⟨P⟩⟧", "Passwort: ⟦⟨P⟩⟧", "Kennwort: ⟦⟨P⟩⟧", "Das Kennwort lautet ⟦⟨P⟩⟧.", "Mein Zugangsschlüssel: ⟦⟨K⟩⟧", "Benutzer bob, Passwort ⟦⟨P⟩⟧", "Das Passwort für die Datenbank ist ⟦⟨P⟩⟧", "passwort = '⟦⟨P⟩⟧'", "Geheimnis: ⟦⟨P⟩⟧", "Zugangsdaten: bob / ⟦⟨P⟩⟧"),
    "French": ("Le mot de passe est ⟦⟨P⟩⟧", "Mot de passe : ⟦⟨P⟩⟧", "mot_de_passe = \"⟦⟨P⟩⟧\"", "La clé d'API est ⟦⟨K⟩⟧", "Voici le mot de passe de la base : ⟦⟨P⟩⟧", "mdp: ⟦⟨P⟩⟧", "jeton d'accès : ⟦⟨K⟩⟧", "Identifiants : bob / ⟦⟨P⟩⟧"),
    "Spanish": ("La contraseña es ⟦⟨P⟩⟧", "Contraseña: ⟦⟨P⟩⟧", "contrasena=⟦⟨P⟩⟧", "La clave de API es ⟦⟨K⟩⟧", "clave secreta: ⟦⟨K⟩⟧", "usuario bob, contraseña ⟦⟨P⟩⟧", "La contraseña de la base es: ⟦⟨P⟩⟧"),
    "Italian": ("La password è ⟦⟨P⟩⟧", "Parola d'ordine: ⟦⟨P⟩⟧", "chiave segreta: ⟦⟨K⟩⟧", "La chiave API è ⟦⟨K⟩⟧", "la password del database è ⟦⟨P⟩⟧", "credenziali: bob / ⟦⟨P⟩⟧"),
    "Portuguese": ("A senha é ⟦⟨P⟩⟧", "Senha: ⟦⟨P⟩⟧", "palavra-passe: ⟦⟨P⟩⟧", "senha=⟦⟨P⟩⟧", "chave secreta: ⟦⟨K⟩⟧", "A senha do banco é ⟦⟨P⟩⟧", "A chave da API é ⟦⟨K⟩⟧"),
    "Chinese": ("密码是⟦⟨P⟩⟧", "密码：⟦⟨P⟩⟧", "数据库密码为 ⟦⟨P⟩⟧", "密碼: ⟦⟨P⟩⟧", "口令：⟦⟨P⟩⟧", "密钥：⟦⟨K⟩⟧", "我的令牌是 ⟦⟨K⟩⟧", "用户名 bob，密码 ⟦⟨P⟩⟧", "API密钥是“⟦⟨K⟩⟧”"),
    "Japanese": ("パスワードは⟦⟨P⟩⟧です", "パスワード：⟦⟨P⟩⟧", "パスワード: ⟦⟨P⟩⟧", "暗証番号は ⟦⟨P⟩⟧", "APIキーは「⟦⟨K⟩⟧」です", "秘密鍵：⟦⟨K⟩⟧", "トークンは ⟦⟨K⟩⟧"),
    "Russian": ("Пароль: ⟦⟨P⟩⟧", "пароль ⟦⟨P⟩⟧", "Пароль от базы — ⟦⟨P⟩⟧", "ключ API: ⟦⟨K⟩⟧", "Пароль для входа: ⟦⟨P⟩⟧", "токен: ⟦⟨K⟩⟧", "секретный ключ ⟦⟨K⟩⟧"),
    "Korean": ("비밀번호는 ⟦⟨P⟩⟧ 입니다", "비밀번호: ⟦⟨P⟩⟧", "암호: ⟦⟨P⟩⟧", "API 키: ⟦⟨K⟩⟧"),
    "Dutch": ("Het wachtwoord is ⟦⟨P⟩⟧", "wachtwoord: ⟦⟨P⟩⟧", "geheime sleutel: ⟦⟨K⟩⟧"),
    "Polish": ("Hasło: ⟦⟨P⟩⟧", "Hasło to ⟦⟨P⟩⟧", "haslo=⟦⟨P⟩⟧"),
    "Nordic": ("Lösenordet är ⟦⟨P⟩⟧", "lösenord: ⟦⟨P⟩⟧", "adgangskode: ⟦⟨P⟩⟧", "Passordet er ⟦⟨P⟩⟧", "salasana: ⟦⟨P⟩⟧"),
    "Turkish": ("Şifre: ⟦⟨P⟩⟧", "parola: ⟦⟨P⟩⟧", "Şifresi ⟦⟨P⟩⟧"),
    "Slavic": ("heslo: ⟦⟨P⟩⟧", "Heslo je ⟦⟨P⟩⟧", "lozinka: ⟦⟨P⟩⟧", "парола: ⟦⟨P⟩⟧"),
    "Asian": ("mật khẩu: ⟦⟨P⟩⟧", "kata sandi: ⟦⟨P⟩⟧", "รหัสผ่าน: ⟦⟨P⟩⟧", "पासवर्ड: ⟦⟨P⟩⟧"),
    "Semitic": ("كلمة المرور: ⟦⟨P⟩⟧", "סיסמה: ⟦⟨P⟩⟧", "كلمة السر هي ⟦⟨P⟩⟧"),
    "more European": ("jelszó: ⟦⟨P⟩⟧", "Κωδικός: ⟦⟨P⟩⟧", "parolă: ⟦⟨P⟩⟧", "contrasenya: ⟦⟨P⟩⟧"),
}  # fmt: skip

LOOK_ALIKES: dict[str, tuple[str, ...]] = {
    "git": ("commit ⟨H40⟩\nAuthor: Bob <b@example.com>", "index ⟨H7⟩..⟨H7⟩ 100644", "Fix password reset (⟨H7⟩)", "uses: actions/checkout@⟨H40⟩", "⟨H40⟩ refs/heads/token-refresh", "Fast-forward ⟨H9⟩..⟨H9⟩ main -> main", "the token change is in ⟨H40⟩", "key rotation landed in ⟨H12⟩", "git checkout ⟨H40⟩ -- src/auth/token.py", "HEAD is now at ⟨H7⟩ Rotate secret"),
    "uuid": ("⟨H8⟩-⟨H4⟩-4⟨H3⟩-a⟨H3⟩-⟨H12⟩", '"id": "⟨H8⟩-⟨H4⟩-4⟨H3⟩-a⟨H3⟩-⟨H12⟩"', "session ⟨H8⟩-⟨H4⟩-4⟨H3⟩-a⟨H3⟩-⟨H12⟩ ended", "/users/⟨H8⟩-⟨H4⟩-4⟨H3⟩-a⟨H3⟩-⟨H12⟩/tokens", '"sessionId": "⟨H8⟩-⟨H4⟩-4⟨H3⟩-a⟨H3⟩-⟨H12⟩"', "token_id=⟨H8⟩-⟨H4⟩-4⟨H3⟩-a⟨H3⟩-⟨H12⟩"),
    "digest": ("⟨H64⟩  app.tar.gz", "sha256:⟨H64⟩", "SHA1(x)= ⟨H40⟩", "md5: ⟨H32⟩", 'ETag: "⟨H32⟩"', "Digest: sha256:⟨H64⟩", "checksum = \"⟨H64⟩\"", "token cache key: sha256:⟨H64⟩", "password.txt: OK, sha256 ⟨H64⟩", "image@sha256:⟨H64⟩", "fingerprint SHA256:⟨B43⟩", "MD5 (secret.txt) = ⟨H32⟩"),
    "lock file": ('"integrity": "sha512-⟨B86⟩=="', "resolution: {integrity: sha512-⟨B86⟩==}", "github.com/a/token v1.2.3 h1:⟨B43⟩=", "    --hash=sha256:⟨H64⟩ \\", 'hash = "sha256:⟨H64⟩"', '"js-tokens": "^4.0.0"', 'name = "secrecy"\nversion = "0.8.0"\nchecksum = "⟨H64⟩"', "/js-tokens@4.0.0:\n  resolution: {integrity: sha512-⟨B86⟩==}", '"content-hash": "⟨H32⟩"'),
    "image": ("data:image/png;base64,⟨B400⟩==", "url(data:font/woff2;base64,⟨B300⟩)", '<img src="data:image/gif;base64,⟨B80⟩">', "⟨B600⟩", "![key](data:image/png;base64,⟨B200⟩=)"),
    "code": ("password = get_password()", "token: str", 'os.environ["X_TOKEN"]', "secret = config.secret", "api_key = os.getenv('API_KEY')", "def login(user: str, password: str) -> Token:", "const [token, setToken] = useState('')", "if (password !== confirmPassword) {", "this.token = token;", "self.password = hash_password(password, salt)", "token = request.headers.get('Authorization')", "apiKey: process.env.API_KEY!,", "password: string;", "private readonly tokenService: TokenService,", "let secret = std::env::var(\"SECRET\")?;", "return jwt.sign(payload, secret, { expiresIn: '15m' });", "password = forms.CharField(widget=forms.PasswordInput)", "token := r.Header.Get(\"X-Token\")", "secretKeyRef:\n  name: db\n  key: password", "assert token.is_valid()", "key = f'{user}:{token}'", "passwords.map(p => p.length)", "SECRET_KEY = env('SECRET_KEY')", "public function password(): string", "auth.signInWithPassword({ email, password })", "expect(token).toBeDefined()", "type Token = string | null", "token: token.value,", "with open(token_path) as f: token = f.read().strip()", "key=lambda pair: pair[1]", "password=password, token=token", "val token: String? = null", 'cookie = request.cookies.get("session")', "session = sessionmaker(bind=engine)", "cookies: RequestCookies", "const session = await getServerSession(authOptions)", "key: 'user-settings-v2',", "auth = HTTPBasicAuth(user, password)"),
    "code literals": ('raise ValueError("password must not be empty")', "t('login.password.label')", 'label="Password"', 'placeholder="Enter your password"', 'name="password" type="password"', '"password": "string"', 'password: "required|min:8"', 'header = "X-Api-Key"', "TOKEN_TYPE = 'bearer'", "token_url='https://auth.example.com/oauth/token'", '"tokenEndpoint": "/oauth2/v1/token"', "SESSION_COOKIE_NAME = 'sessionid'", "cookie_name: 'app_session_id'", "CSRF_HEADER = 'X-CSRF-Token'", 'secretName: "db-credentials"', "PASSWORD_RESET_TIMEOUT=259200", "auth_type: 'client_secret_basic'", '"key": "ArrowDown"', 'key="item-42-title"', '"publicKey": "ssh-ed25519"', "tokenizer='cl100k_base'", "password_field = 'input[name=password]'", "data-testid=\"password-input-2\"", '{"name": "password", "type": "string", "required": true}', '{"name": "API_KEY", "description": "Key for the API v2"}', "- name: token\n  in: header\n  required: true", '- name: DB_PASSWORD\n  valueFrom:\n    secretKeyRef: {name: db, key: password}', '{"key": "Tab", "value": "indent-level-2"}'),
    "placeholder": ("password: ${DB_PASSWORD}", "API_KEY=$OTHER_API_KEY", "TOKEN=<your-token>", "api_key: YOUR_API_KEY_HERE", "password: changeme123", "password: ********", "secret: xxxxxxxxxxxxxxxx", "--token \"$GITHUB_TOKEN\"", "password={{ vault_db_password }}", "Authorization: Bearer ${TOKEN}", "Authorization: Bearer <token>", "token: ${{ secrets.NPM_TOKEN }}", 'password = "%(db_password)s"', "password=%s", "curl -u $USER:$PASS https://x", "mysql -u root -p shop", "password: \"{password}\"", "postgres://user:${PGPASSWORD}@db/x", "IDENTIFIED BY '<password>'", "API_KEY=example-api-key-1", "PASSWORD=${PASSWORD:-}", 'token = "@@TOKEN@@"', "password: REPLACE_ME_2", "secret: 'my-secret-value'", "key: ...", "password: [redacted:secret]", "SECRET=(unset)", "-e API_KEY -e TOKEN", 'PASSWORD="$(cat /run/secrets/db2)"', "TOKEN=$(vault read -field=token2 x)", "password=&lt;your password&gt;", 'password: "$DB_PASSWORD_2"', 'token = "{{ .Values.token2 }}"', "secret: \"%SECRET_VALUE%\"", 'password="<password-1>"', "echo $TOKEN | docker login --password-stdin", "docker login --password-stdin < ~/.token2", 'pass: "@Value(db.password2)"', "API_TOKEN=@/run/secrets/token2"),
    "prose": ("The password must be at least 12 characters long.", "Passwords are hashed with bcrypt.", "the token expires after 3600 seconds", "A secret is mounted as a file.", "Enter the password when asked.", "The API key is stored in 1Password.", "Reset your password within 24h.", "token budget is 200k per request", "The session is kept for 30 days.", "the key is to measure first", "password is required", "The password is wrong, try again", "The token is invalid or expired (401)", "The secret is out: version 2.0 is here", "Use the token endpoint v2 for refresh.", "Your password was changed on 2026-03-04.", "log in as admin / or use SSO", "The password is stored in the keychain", "their credentials are checked by Auth0Provider", "cookies are enabled", "the cookie is set by middleware2", "Password hashing (argon2id) is slow on purpose", "use your password to log in", "token refresh happens every 15min", "The private key is never sent", "The passphrase is optional", "password for the database is in the vault", "keys and values, passwords and tokens", "The access token lives 15 minutes.", "API key authentication is described in docs/auth-v2.md.", "I changed the password to be optional", "set the token to null on logout", "use password authentication for local development", "password reset flow fails in e2e-test-3"),
    "other languages": ("Das Passwort ist falsch", "Bitte Passwort eingeben", "Das Passwort muss 12 Zeichen haben.", "Le mot de passe est requis", "Entrez votre mot de passe", "La contraseña es obligatoria", "A senha deve ter 8 caracteres", "密码不能为空", "请输入密码", "密码长度必须大于8", "パスワードを入力してください", "パスワードは必須です", "Пароль неверный", "Введите пароль", "비밀번호를 입력하세요", "Hasło jest wymagane", "Passwort vergessen?", "La clave primaria es id_usuario", "mot de passe oublié", "senha inválida"),
    "minified": ("!function(e,t){var n={token:e.token,password:t.pw2,key:0x1f};return n.apiKey=function(){return e(12)}}(a,b)", "e.exports={secret:n(42),auth:r.auth||void 0,cookie:o[3]}", "a.password=b.password2||null,c.token=d?e.tok:void 0", '.t{color:#⟨H6⟩}.password-input--2{width:12px}', "var t=e.cookie,n=t.session&&t.session.id2"),
    "names": ("class PasswordResetTokenGenerator2:", "def test_password_reset_token_v2_expires():", "TokenAuthenticationMiddleware2", "test_login_with_wrong_password_returns_401", "use App\\Http\\Middleware\\VerifyCsrfToken2;", "import { SecretsManagerClient2 } from '@aws-sdk/client-secrets-manager'", "password_hasher_factory_v3", "IPasswordHasher<User>", "org.springframework.security.crypto.password.PasswordEncoder", "kubectl get secret db-credentials-v2 -o yaml", "PASSED tests/test_token.py::test_refresh_token_v2[case-3]", "TestTokenRotation/with_expired_token_2"),
    "paths": ("/run/secrets/db_password", "src/auth/token_v2.py:42", "password_file: /etc/app/password2.txt", "--token-file=/var/run/token2", "~/.ssh/id_ed25519", "C:\\Users\\bob\\secret2.txt", "secret: ./k8s/secret-v2.yaml", "PASSWORD_FILE=/run/secrets/pw1", "api_key_path = 'conf/api_key2.pem'", "token: file:///run/token2", "credentials=~/.aws/credentials", "/etc/pki/tls/private/key2.pem", "passwd: /etc/passwd", "-i ~/.ssh/deploy_key2 -p 2222"),
    "public keys": ("ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQ⟨B340⟩ bob@host", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI⟨B43⟩ bob", "-----BEGIN PUBLIC KEY-----\n⟨B64⟩\n⟨B64⟩\n-----END PUBLIC KEY-----", "-----BEGIN CERTIFICATE-----\n⟨B64⟩\n⟨B64⟩\n⟨B20⟩==\n-----END CERTIFICATE-----", "PublicKey = ⟨B43⟩=", "pk·_live_⟨A24⟩", "pk·_test_⟨A24⟩", "age1⟨L58⟩", '{"kty":"RSA","n":"⟨W342⟩","e":"AQAB","kid":"a1"}', "certificate-authority-data: ⟨B200⟩=", "caBundle: ⟨B200⟩==", "public_key: ⟨H64⟩"),
    "css": (".token.keyword{color:#07a}", "color: #⟨H6⟩; background: #⟨H3⟩", "css-⟨L6⟩-Password-root", ".secret__input--2x { margin: 0 -4px }", "--token-color-1: #⟨H6⟩;", "font-family: 'Passwords2';"),
    "versions": ("token-service:1.4.2-rc.3", "js-tokens@^4.0.0", "password-hash 0.5.0", "secretstorage==3.3.3", "auth0-python>=4.7.1,<5", "passlib 1.7.4 (from requirements.txt)", "v2.31.0.post1+g⟨H7⟩", "tokenizers-0.21.0-cp39-abi3-manylinux_2_17_x86_64.whl", "keyring==25.2.1", "python-keycloak~=4.1.0"),
    "ids": ("msg_01⟨A22⟩", "toolu_01⟨A22⟩", "req_011C⟨A20⟩", "cus_⟨A14⟩", "pi_3⟨A23⟩", "price_1⟨A23⟩", "arn:aws:secretsmanager:us-east-1:123456789012:secret:db-⟨A6⟩", "i-0⟨H17⟩", "vpc-⟨H17⟩", "projects/p/secrets/s/versions/3", "chatcmpl-⟨A29⟩", "resp_⟨H48⟩", "trace_id=⟨H32⟩ span_id=⟨H16⟩", "x-request-id: ⟨H8⟩-⟨H4⟩-4⟨H3⟩-a⟨H3⟩-⟨H12⟩", "01⟨U24⟩", "thread_⟨A24⟩", "subnet-⟨H17⟩", "call_⟨A24⟩", "kid: ⟨W43⟩", "build_id=⟨H40⟩", "client_id: ⟨H8⟩-⟨H4⟩-4⟨H3⟩-a⟨H3⟩-⟨H12⟩", "aws_access_key: see the vault", "nonce-⟨B22⟩==", "file-⟨A24⟩"),
    "assets": ("main-⟨H20⟩.js", "chunk-⟨U8⟩.mjs", "app.⟨H8⟩.css", "/assets/index-⟨W8⟩.js", "vendor~main.⟨H20⟩.chunk.js", "/cache/⟨H2⟩/⟨H62⟩", "docker-⟨H64⟩.scope", "overlay2/⟨H64⟩/merged", "pod/web-⟨L9⟩-⟨L5⟩", "/nix/store/⟨L32⟩-openssl-3.0.14", "container_⟨H64⟩", "blob-⟨H40⟩", "image-layer_⟨H64⟩.tar"),
    "counts": ("max_tokens: 4096", "input_tokens=1234567890", "tokens per second: 1234.56", "total tokens: 12,345,678", "token_count: 20240304", "completion_tokens: 1024 prompt_tokens: 998877", "password_min_length: 12", "secret_rotation_days=90", "session_timeout: 86400000", "cookies: 12345678", "passed=12345678 failed=0", "passes: 10000000"),
    "logs": ("2026-03-04T05:06:07.890Z INFO token refreshed for user 1234567", "Authentication failed: invalid password for user bob from 10.0.0.7 port 51234 ssh2", "Accepted publickey for bob: RSA SHA256:⟨B43⟩", "POST /oauth/token 200 12.345ms", "session opened for user root(uid=0)", "GET /api/keys/⟨D8⟩ 404", "[secret-sync] 12 keys updated at 2026-03-04T05:06:07Z", "token bucket: 1000000 capacity, 50000/s", "auth: user=bob method=password result=ok2", "Cookie consent banner shown (v2.3.1)", "session=web-7f9c pod=api-1 status=ready2"),
    "tables": ("| setting | default |\n|---|---|\n| password_min_length | 12 |", "| Name | Type | Description |\n|---|---|---|\n| password | string | at least 8 characters |", "name,type,required\npassword,string,true", "<tr><th>Password</th><th>Required2</th></tr>", "| token | count |\n|---|---|\n| foo_bar2 | 12 |", "user,password_changed_at\nbob,2026-03-04T05:06:07Z", "<td>Password</td><td>required, min 8</td>", "| Secret | Rotation |\n|---|---|\n| db-main-v2 | 90 days |"),
    "commands": ("ssh -p 2222 bob@host", "docker run -p 8080:80 -u 1000:1000 -e TZ=UTC web2", "mkdir -p src/app2/parsers", "curl -u https://example.com", "7z x a.7z -o/tmp/out", "openssl rand -hex 32", "ldapsearch -x -b dc=example,dc=com uid=bob2", "zip -r out-2026.zip src", "htpasswd -c /etc/nginx/.htpasswd bob", "psql -p 5433 -U app2 shop", "git push -u origin feature/token-v2", "pytest -p no:cacheprovider -k password2", "vault kv get secret/data/app2", "redis-cli -h cache -n 12 keys 'session:*'", "echo 'hello-world-42' | tee out.txt", "unzip -p archive2.zip README.md", "cp -p a.txt b2.txt", "openssl enc -aes-256-cbc -pass env:PASS2", "mysql -u root -p -e 'select 1'", "nmap -p 80,443,8080 10.0.0.0/24", "smbclient -L //host -N", "tar -xzpf backup-2026-03-04.tgz", "sed -n '120,240p' token.py", "sqlplus / as sysdba"),
    "sql": ("SELECT id, password_hash FROM users WHERE email = 'bob@example.com'", "ALTER TABLE users ADD COLUMN api_key VARCHAR(64) NOT NULL", "CREATE INDEX idx_tokens_user2 ON tokens (user_id, created_at)", "password VARCHAR(255) DEFAULT NULL", "INSERT INTO users (id, name) VALUES (1, 'bob-smith-2')", "UPDATE users SET password = $1 WHERE id = $2", "CREATE USER app WITH PASSWORD :password", "UPDATE users SET password = crypt($1, gen_salt('bf', 8))", "IDENTIFIED BY ?", "WHERE token = @token2"),
}  # fmt: skip


def _pem(make: Maker, lines: int = 6) -> str:
    body = "\n".join(make.text(64, BASE64) for _ in range(lines))
    label = make.one_of("RSA ", "EC ", "OPENSSH ", "ENCRYPTED ", "")
    return f"-----BEGIN {label}PRIVATE " + f"KEY-----\n{body}\n-----END {label}PRIVATE " + "KEY-----"


def _password(make: Maker) -> str:
    """As generators and people make them, with at least eight characters and a digit or symbol."""
    count = make.random.randint(9, 20)
    return make.one_of(
        make.text(count - 3) + make.text(1, "!#%*+~?-_") + make.text(2, string.digits),
        make.text(count - 2) + make.text(2, string.digits),
        make.text(3) + make.text(1, "!#%*+_-") + make.text(count - 5) + make.text(1, string.digits) + make.text(1, "!*+#"),
    )


def _value(make: Maker, name: str) -> str:
    if name == "P":
        return _password(make)
    if name == "R":  # safe in a shell
        return re.sub(r"[^A-Za-z0-9]", "x", _password(make)) + "7Kq"
    if name == "K":
        return make.one_of(make.text(32, HEX), make.text(40), make.text(24), make.text(43, URL_SAFE))
    if name == "Q":
        word = make.one_of("summer", "dragon", "winter", "banana", "monkey", "hunter")
        return make.one_of(word.title(), word) + make.text(4, string.digits) + make.one_of("!", "", "$", "#")
    if name == "w":
        return make.one_of(*"abandon ability legal winner thank year wave sausage worth useful zoo vote trumpet".split())
    if name in "MNO":
        key = _pem(make)
        return {"M": key, "N": "    " + key.replace("\n", "\n    "), "O": key.replace("\n", "\\n")}[name]
    plain = {
        "Y": _password(make) + make.text(6),
        "J": '{"auths":{"r.example.com":{"auth":"' + make.text(40) + '"}}}',
        "V": f"admin:{_password(make)}",
        "G": _pem(make),
    }[name]
    return base64.b64encode(plain.encode()).decode()


def _fill(make: Maker, template: str) -> str:
    def fill(match: re.Match[str]) -> str:
        return make.text(int(match[2]), ALPHABETS[match[1]]) if match[2] else _value(make, match[1])

    # `⟨316⟩` is 16 of the alphabet "3"
    return _HOLE.sub(fill, template).replace("·", "")


def _planted(make: Maker, kind: str, template: str) -> Planted:
    filled = _fill(make, template)
    secret = _SECRET.search(filled)
    return Planted(kind, _SECRET.sub(r"\1", filled), secret[1] if secret else "")


def _kinds() -> dict[str, dict[str, tuple[str, ...]]]:
    """All templates by group and kind."""
    tokens = {"forms": (FORMS, WHERE), "other providers": (PROVIDERS, WHERE), "colored": (FORMS, COLORED)}
    groups = {
        group: {kind: tuple(_framed(frame, form) for frame in frames) for kind, form in table.items()}
        for group, (table, frames) in tokens.items()
    }
    return {**groups, "named": NAMED, "other languages": LANGUAGES, "look-alikes": LOOK_ALIKES}


def _framed(frame: str, form: str) -> str:
    """`frame` around a token; what `form` says beyond the token itself stays outside the secret."""
    token, space, rest = form.partition(" ")
    return frame.replace("⟦T⟧", f"⟦{token}⟧{space}{rest}")


def corpus(seed: int, per_kind: int, *, all_kinds: bool) -> dict[str, list[Planted]]:
    """Texts by group, `per_kind` of each kind."""
    make = Maker(seed)
    groups = {group: list(_of_group(make, kinds, per_kind, all_kinds)) for group, kinds in _kinds().items()}
    groups["look-alikes"] += look_alikes(seed, 600)
    return groups


def _of_group(
    make: Maker, kinds: dict[str, tuple[str, ...]], per_kind: int, all_kinds: bool
) -> Iterator[Planted]:
    for number, (kind, templates) in enumerate(kinds.items()):
        if not all_kinds and number % 4 == 3:
            continue
        some = templates if all_kinds or len(templates) == 1 else templates[:-1]
        start = make.random.randrange(len(some))
        # Tokens stand in some of the frames; everything else uses each template at least once.
        is_token = kind in FORMS or kind in PROVIDERS
        for position in range(per_kind if is_token else max(per_kind, len(some))):
            yield _planted(make, kind, some[(start + position) % len(some)])


def fit(seed: int = 11) -> dict[str, list[Planted]]:
    """The half to tune on."""
    return corpus(seed, 5, all_kinds=False)


def held(seed: int = 4242) -> dict[str, list[Planted]]:
    """The half to report on: other values, and kinds and templates that `fit` has not."""
    return corpus(seed, 6, all_kinds=True)


def is_found(planted: Planted, shown: str) -> bool:
    """Whether no eight characters of the secret are left in `shown` (six of a short one)."""
    secret = planted.secret.removeprefix("https://")
    shown = re.sub(r"\[redacted:[a-z-]+\]", "\0", shown)
    size = min(8, max(6, len(secret) - 4))
    return not any(secret[at : at + size] in shown for at in range(len(secret) - size + 1))
