"""Outputs of tools and prompts: the share of secrets that is found, and of innocent text that is touched."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memkit.archive.archive import Archive
from memkit.capture.capture import Capture
from memkit.privacy import literals, secret_formats, secret_values
from memkit.privacy.redact import redact, visible
from memkit.privacy.secret_formats import _forms, _literals, of_literals
from memkit.settings.load import Settings
from tests.builders import Lines
from tests.capture.stage import Stage, prompt_id
from tests.ci import examples
from tests.privacy import secrets_corpus, secrets_outputs
from tests.privacy.secrets_made import Maker, secrets

HALVES = {"fit": secrets_outputs.fit, "held": secrets_outputs.held}
FLOORS = {
    ("outputs", "fit"): (0.99, 0.98, 0), ("outputs", "held"): (0.96, 0.97, 0),
    ("terminals", "fit"): (0.99, 0.99, 0), ("terminals", "held"): (0.92, 0.92, 0.011),
    ("sessions", "fit"): (0.93, 0.92, 0), ("sessions", "held"): (0.96, 0.92, 0.008),
    ("work", "fit"): (0.98, 0.98, 0), ("work", "held"): (0.93, 0.78, 0.011),
    ("notes", "fit"): (0.99, 0.96, 0),
}  # fmt: skip
"""The lowest shares of named and everyday secrets that are found, and the highest share of innocent text that is touched."""


@pytest.mark.parametrize(("corpus", "half"), FLOORS)
def test_secrets_are_found_and_innocent_text_stays(corpus: str, half: str) -> None:
    outputs = HALVES[half](corpus)
    *goals, highest = FLOORS[corpus, half]
    for group, goal in zip(("named", "everyday"), goals, strict=True):
        found = [hit for one in outputs[group] for hit in one.found(redact)]
        assert sum(found) >= goal * len(found), group
    innocent = outputs["innocent"]
    harmed = [one.text for one in innocent if one.shown(redact) != visible(one.text)]
    assert len(harmed) <= highest * len(innocent), harmed


@pytest.mark.parametrize("half", HALVES)
def test_twice_is_as_once(half: str) -> None:
    for outputs in HALVES[half]().values():
        for one in outputs[::4]:
            shown = one.shown(redact)
            assert redact(shown) == shown


@settings(max_examples=examples(100))
@given(parts=st.lists(st.sampled_from(_literals().all) | st.text(max_size=4), max_size=40))
def test_one_scan_finds_the_same_literals_as_a_search_for_each(parts: list[str]) -> None:
    text = "".join(parts)
    lowered = literals.lower(text)
    assert _literals().find(lowered) == {one: [*literals.occurrences(lowered, one)] for one in _literals().all if one in lowered}


def test_a_form_is_found_only_near_its_literals() -> None:
    text = "\n".join([one.text for group in secrets_outputs.fit().values() for one in group] + [one.text for one in secrets(3, 500)])
    for form in _forms()[0]:
        pattern = secret_formats._compiled(form.pattern)
        spans = [match.span() for match in pattern.finditer(text)]
        near = secret_formats._matches_near(text, pattern, form, of_literals(literals.lower(text)))
        assert not form.ahead or [match.span() for match in near] == spans
        assert all(any(one.lower() in text[start : end + 2].lower() for one in form.literals or ("",)) for start, end in spans), form


@pytest.mark.parametrize("text", ["${DB_PASSWORD:?missing}", "TOKEN=${GITHUB_TOKEN:?GITHUB_TOKEN is not set}"])
def test_the_message_of_a_missing_variable_stays(text: str) -> None:
    assert redact(text) == text


def test_a_search_below_a_line_does_not_go_on_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[str] = []
    looks_secret = secret_values._looks_secret

    def count(value: str, *rest: bool) -> bool:
        judged.append(value)
        return looks_secret(value, *rest)

    monkeypatch.setattr(secret_values, "_looks_secret", count)
    counts = []
    for lines in (50, 100):
        judged.clear()
        redact("$ cat token\nabcdefgh\n" * lines + "Secret key:\nabcdefgh\n" * lines)
        counts.append(len(judged))
    assert 0 < counts[1] <= 2.2 * counts[0]


@pytest.mark.parametrize("text", ["mot de passe : Lantern@4711", "| host | password |\n|---|---|\n| db | HArbor_4711 |", "the password is velvet-saddle-4711, thanks"])
def test_passwords_that_people_make_up(text: str) -> None:
    assert "4711" not in redact(text)


@pytest.mark.parametrize(
    "text",
    [
        'the password is now "Velvet.nectar48"', "Kennwort Kettle-Tasse4848!", "DB_PASSWORD=Kettle_quartz48", "pw: Ad48n8!",
        "<td>Password</td><td>Falcon_amber48</td>", "пароль Harbor.winter48", "密码：Maple-harbor48", "log in as root with Harbor#4848",
        "C: AUTH PLAIN AG5hZGlhAEhhemVs48Xq", 'a1 LOGIN nadia "sddle-q48"', '$ sudo -S ls <<< "0JZ%.K48dJ"', 'send "Ab3xY9k48q\\r"',
        "$ wpa_passphrase Home falcon-yonder48", "ssh 2i3LwjwdeJrJbPpJDKQ48yBYzHb@lon1.tmate.io", "keytool -keypass Ad48n8!",
        "## Accounts\n- Hetzner: K0482193 / oPI48*ySQe", '"type": "random_password",\n  "result": "MLQvmALxVV7v48BE"',
        "Generated password for the portal:\nsc_)wCg48VfF8V.xs", "https://app.example.com/reset/X2h3zvgCT7KHTPEQrjB48w7W",
        'db.changePassword("reporting", "zephyrhazel48")', "GITHUB_PAT=5sk8ypd4fd5ccqg48s20646dgu80lul6", "Recovery codes\n1. a48bt-yu48l",
        'ks.load(in, "bZAMZEV48nm".toCharArray());', "setup key manually: jq48 7m2x pz3w n5ha".replace("48", "2k"),
    ],
)  # fmt: skip
def test_more_kinds_of_values_are_found(text: str) -> None:
    assert "48" not in redact(text).replace("K0482193", "")
    assert "7m2x" not in redact(text)


@pytest.mark.parametrize(
    "text",
    [
        "REDIS_PASSWORD=marzipan", "db:\n  smtp_pass: rhubarb", 'MAIL_PASSWORD="two geese, one pond"', '{"user":"plc","password":"cornflower"}',
        "[pass] => velvet_Mole", "new nas password is lantern-and-lace (same user)", "log in with ruth@example.net and Espresso4two",
        "login with `otto` / `Salt&Pepper` works", "creds: otto:Marigold", "Das Passwort lautet Apfelbaum-Wiese.Ost", "パスワードは Tanuki-san です",
        "host;user;pw\na;root;Zw4?oak7\nb;root;cornflower", "sqlite> select name, pass from accounts;\notto|m4rzipan", "# user:password\nruth:Fog-Horn",
        'imap.login("ruth", "Harbour4Ships")', "Recovery codes:\n- a81c3e90f7d25b64", "[setup] Admin password:\n[setup] Xk92mPqLw7Ta", "$ bw get totp github\n294410",
    ],
)  # fmt: skip
def test_what_people_make_up_is_found(text: str) -> None:
    assert "[redacted:secret]" in redact(text)


@pytest.mark.parametrize(
    "text",
    [
        # Commands name the secret, and outputs are bare.
        "$ aws ssm get-parameters --names /app/pw --with-decryption --output text\n/app/pw\t⟦Winterapfel_7⟧", '$ op read "op://Home/Router/password"\n⟦Zwergwiesel⟧',
        "$ kubectl get secret mail -o jsonpath='{.data.pass}' | base64 -d\n⟦nebel_horn⟧", "$ printenv SMTP_PASS\n⟦mondblume⟧", "$ vault kv get secret/x\nKey    Value\n---    -----\nplesk    ⟦Nuss!Sued9⟧",
        "$ sops -d x.yaml\nroot: ⟦karpfen_teich⟧\nbackup: ⟦Drei Nuesse und 1 Apfel⟧", "$ pwgen 20 2\n⟦Kx8mQ2vLp9RwTz4nYc7B⟧ ⟦Hd5sWq3jGf6tZb8kXm2V⟧", "$ doppler secrets\n│ BRAIN_PRIV │ ⟦Kx8mQ2vLp9RwTz4nYc7B⟧ │",
        "$ echo bmVuYTpOdXNzLUJhdW0= | base64 -d\nnena:⟦Nuss-Baum9⟧", "[sudo] password for anna: ⟦sonnen.blume⟧", '10.0.0.7:6379> CONFIG GET requirepass\n1) "requirepass"\n2) "⟦Eis_Vogel_See⟧"',
        # Lists, tables, pairs, and lines of their own
        "logins.txt\n----------\nanna:⟦Rotkehl7chen⟧\nbert:⟦zaun-koenig-nest⟧", "Zugänge Schule (Mai)\n\nrouter   admin    ⟦Moos.Farn.3⟧\nusv      apc      ⟦Wn2vC6jR9e⟧", "Passwörter\nWeb: vorstand -> ⟦Hunter1804⟧",
        "| Host | Login |  |\n|---|---|---|\n| db | admin | ⟦Leucht-Turm-44⟧ |", "Nr.    PIN    PUK\n015    ⟦4680⟧   ⟦86546381⟧", "INSERT INTO users (mail, password) VALUES\n ('a@b.example', '⟦tulpe1960⟧'),\n ('c@d.example', '⟦Manta_B_400⟧');",
        "Username\nsvc\nPassword\n⟦Uhr-Werk-Pendel⟧", "VPNの共有鍵は下の行です。\n⟦Fuji-Yama-77⟧", "GitHub two-factor: unused\n\n⟦e09b1-76603⟧   ⟦b27fb-ee3b7⟧", "Enter this key by hand in your authenticator:\n\n⟦7IV6 4W4G A6YN EB7F FZ5O PBGB OBEM 3RD4⟧",
        # Settings, options, and manifests hold literals.
        "SMTP_PASS=⟦fliegen_pilz.rot⟧", "backup.sh --passphrase=⟦Omas.Kuchen⟧", "app login -u ci --password ⟦monkey_business7⟧", 'shared_secret = "⟦kong-Banana-Ladder⟧"', "NEO4J_AUTH=neo4j/⟦graph-Giraffe⟧",
        '{"kind":"Secret","data":{"hmac":"⟦dEs0N2xYT1ZuM3h6SUZwcGM0UHpPejVG⟧"}}', "kind: Secret\nstringData:\n  extra: ⟦Kx8mQ2vLp9RwTz4nYc7B⟧", "api:\n  encryption:\n    key: ⟦iTUvuN3QdK2WL9rFdJUjeh0iESfc5HPepFigsGVc⟧", "network_key: ⟦[7, 13, 57, 44, 9, 133, 7, 250, 23, 3, 18, 106, 66, 61, 201, 5]⟧",
        "Cookie: PHPSESSID=⟦bwtabfyandmpd5e3prhzlpuwxsvobtav⟧", '"cookies": [\n {"name": "r", "value": "⟦Kx8mQ2vLp9RwTz4nYc7B⟧"}', "new PDO('mysql:host=db', 'shop', '⟦Saurier-Knochen⟧', $options)", "https://x.example/api/push/⟦Kx8mQ2vLp9RwTz4nYc7BHd5sWq3jGf6t⟧?status=up",
        # People
        "<kim> tu as le mdp du wiki ?\n<lee> wiki / ⟦Tarte_Tatin59⟧", "[12.06.24, 18:22] Lena: was war nochmal das Passwort\n[12.06.24, 18:23] Jo: ⟦Rhabarber&Vanille⟧", "entra con anna@example.com e ⟦Pistacchio_Verde1⟧", "the login is ops@x.example + ⟦Sirene&Blaulicht⟧",
        "Der Benutzer meldet sich mit `⟦Absatz-Marke-61⟧` an.", "I set the Grafana admin to ⟦Herbstlaub2022⟧ last night", "Ich komme mit ⟦Herbst2023!⟧ nicht auf den Server, das Kennwort ist neu", "Le mot de passe est « ⟦bonjour_Paris1⟧ ».", "管理画面のログイン: admin / ⟦croissant_22⟧",
        "Anna: wie geht der Zugang zum NAS?\nBen: user ben\nBen: ⟦Kastanie&Igel7⟧", "<kim> creds for the build box\n<kim> 10.1.1.7\n<kim> kim2 // ⟦Wal-w-Wodzie-8⟧", "ssh root@10.1.1.7 and use ⟦Buche7Rot⟧ there",
        "open the zip with this:\n\n    ⟦plum-Compote-3310⟧\n\nsent separately", "la clave del router fue cambiada a ⟦Farola#Norte8⟧ ayer", "SSID  Hof\nWireless Key\n⟦48213377⟧", "alarm code is now ⟦482913⟧",
        "gpg_passphrase = ⟦Vier Igel im Laub⟧", 'walletSeed = "x"\nseed of the wallet:\n1. ⟦velvet 2. organ 3. drift 4. maple 5. cousin 6. hazard\n7. rotate 8. silly 9. kitchen 10. plunge 11. arctic 12. beyond⟧',
        ".a.example\tTRUE\t/\tTRUE\t1799999999\tr2\t⟦Kx8mQ2vLp9RwTz4nYc7BHd5sWq3j⟧", "BitLocker recovery key\n⟦402913-118273-550281-667120-093817-245609-781234-330918⟧",
        "test wallet, 12 words:\n⟦velvet organ drift maple cousin hazard rotate silly kitchen plunge arctic beyond⟧", 'the passphrase for the key, it is "⟦year useful sausage legal⟧".', "creds: anna logs in, then ⟦wJ3uZE0zJgDt⟧",
    ],
)  # fmt: skip
def test_the_surroundings_name_a_secret(text: str) -> None:
    secrets = secrets_corpus._SECRET.findall(text)
    shown = redact(secrets_corpus._SECRET.sub(r"\1", text))
    assert not [one for one in secrets if one in shown]


@pytest.mark.parametrize(
    "text",
    [
        "The password is case-sensitive", "password: hashed-and-salted", 'labels: {"password": "Kennwort"}', "password: userInput,", "  password: z.string(),",
        "Passwords must be latin-1 encodable", "all tests pass. Build-Step_2 is next", "--- PASS: TestFind_Present (0.00s)", "(merge 0324e8fc6b pw/word-diff-zero)",
        "https://user:pass@host/path?foo=bar#fragment", "set-root-password\nset-scheduling", "sign in with Google and GitHub", 'credentials: "same-origin"',
        "admin / settings", "# Login\n  flow: three-step-wizard\n  strategy: two-factor-auth", "$ vault kv list secret/prod\nadyen-api-key\nmaria-root-password", "#define GL_TOKEN 0x0702\n#define GL_KEEP  0x1E00", "ansible-playbook --ask-vault-pass --limit web-frontends-eu",
        "FDF81A1236DB426AFE5D2693 /* PasswordField.swift in Sources */", "users:\n  - name: web-admin\n    role: read-write-all", "    if len(token) > limit:\n        pass\nCURVES = {\n    Oid.SECP192R1: SECP192R1,", "the account is used by Platform-Team-2",
        "$ git branch --list '*login*'\n  Sommer-Aktion-2024", "Login works in Otter-Browser12.4.1, not in Safari17.5-Beta2", "user: see ticket Warenkorb-Login-42", "ERR_PASSWORD = 'ERR_PASSWORD_TOO_SHORT'",
        '"password": "パスワードを入力してください"', "password: TODO-ask-the-team", "password_hashing: pbkdf2_sha256", '<p data-token="design-token-gap-4">', "Query ID: 01b2f9a4-0604-8e1c-0000-4c510b2d7a3e (SHOW SECRETS)",
        'token: "0x0eb9d704f43aac363b9e7c42de6db9ccc8ee03c5", // a contract\ntxHash: 0x' + "5b96c2197930785a" * 4, "Deployment: dpl_wGxh7kXuG4zux0jnhLWJrAD2c3AR", "passphrase: see the page in the wiki",
        "password: *db_password", '"forgot": "¿Olvidaste tu contraseña?"', "random_string(\n" + "\n \n" * 80,
    ],
)  # fmt: skip
def test_words_next_to_a_name_for_passwords_stay(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize("words", ["ember-nectar-velvet", "nectar.umber.drift.quartz", "flint_copper_cobalt_amber"])
def test_a_passphrase_of_joined_words(words: str) -> None:
    assert words not in redact(f'SSH_PASSPHRASE: "{words}"')


@pytest.mark.parametrize(
    "text",
    [
        "press the key Ctrl+F5", "- Owner: nadia / Platform-team2", "see the password docs in Chapter-three2", "?q=password+manager&page=2",
        "GITHUB_TOKEN=gh" + "p_" + "x" * 36, "postgres://user:password@localhost:5432/db", "the AKIA" + "IOSFODNN7EXAMPLE key of the manual",
        "Pins: SDA=GPIO21, SCL=GPIO22", "keytool -storepass changeit", "Public key of the peer (base64):\nxTIBA5rboUvnH4htodjb6e697QjLERt1NAB4mZqp8Dg=",
    ],
)  # fmt: skip
def test_what_only_looks_like_a_value_stays(text: str) -> None:
    assert redact(text) == text


def test_a_value_ends_before_the_next_parameter() -> None:
    assert redact(f"username=nadia&password={SECRET}&scope=openid").endswith("&scope=openid")
    shown = redact("$ cat ~/.pgpass\n*:*:*:postgres:snoopy7625\n")
    assert "*:*:*:postgres:" in shown
    assert "7625" not in shown


SECRET = Maker(8).text(30) + "7q"


@pytest.mark.parametrize(
    ("command", "prints"),
    [
        ("consul kv get prod/db/password", True), ("dotenv get JWT_SECRET", True), ("acme auth token", True),
        ("node -p process.env.JWT_SECRET", True), ("head -c 32 /dev/urandom | base64", True), ("yq '.db.password' c.yaml", True),
        ("git show secret-rotation", False), ("cat src/token.ts", False), ("kubectl get secrets -o name", False),
        ('curl -s -H "X-Token: $TOKEN" https://api.example.com/version', False), ("go test ./...", False),
    ],
)  # fmt: skip
def test_the_words_of_a_command_tell_what_it_prints(command: str, *, prints: bool) -> None:
    assert secret_values.prints_secret(command) == prints


@pytest.mark.parametrize(
    "line", ['val apiSecret by lazy {{ "{}" }}', 'api_token: str = Field(default="{}")', 'smtp.login("bot", "{}")', "use {} as the api key"]
)
def test_the_name_of_a_secret_stands_elsewhere_on_the_line(line: str) -> None:
    assert SECRET not in redact(line.format(SECRET))


def test_lines_below_a_printing_command_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[str] = []
    monkeypatch.setattr(secret_values, "_looks_secret", lambda *_: False)
    monkeypatch.setattr(secret_values, "_shape", lambda value: judged.append(value) or 0)
    monkeypatch.setattr(secret_values, "_chosen", lambda *_, **__: 0)
    redact("> password\nAb3xY9kL2q\n" * 50)
    assert len(judged) < 300


@pytest.mark.parametrize(
    ("command", "is_hidden"),
    [("gcloud auth print-access-token", True), ("cd infra && op read op://a/b/password", True), ("git log -1 --format=%s", False)],
)  # fmt: skip
def test_the_result_of_a_command_that_prints_a_secret(stage: Stage, command: str, *, is_hidden: bool) -> None:
    lines = Lines().prompt("print it", prompt_id(1)).call("Bash", "a", command=command)
    stage.write(lines.result("a", SECRET).answer("Done."))
    Capture(stage.home, Settings()).import_file(stage.transcript, stage.project)
    archive = Archive(stage.home)
    kept = json.dumps([str(archive.turns(session)) for session in archive.sessions()])
    assert (SECRET not in kept) == is_hidden
    assert (SECRET not in stage.journal) == is_hidden
