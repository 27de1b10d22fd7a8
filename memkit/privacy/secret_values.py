"""Secrets known by their context: `password = …`, `"apiKey": "…"`, `--token …`, "the key is …".

A value counts as a secret if the points of its shape, of the word that names it, and of what stands between and
around them reach `THRESHOLD`; a new context is a row of `_EVIDENCE`. Assignments and the options of commands have
rules of their own, because their values need not look like secrets.
"""

from __future__ import annotations

import heapq
import math
import re
from bisect import bisect
from collections.abc import Generator, Iterator
from functools import cache
from itertools import islice
from re import Match, Pattern

from memkit.privacy.literals import Places, occurrences

MIN_LENGTH = 8
"""Characters of the shortest value that counts as a secret."""

MIN_ENTROPY = 2.0
"""Bits per character from which a named value counts as a secret. Repeated letters and placeholders have less."""

MIN_CHANGES = 0.25
"""Changes per character between lower case, capitals, and digits from which letters count as random. Camel case has 0.15."""

JUDGED_CHARACTERS = 128
"""The most characters of a value that are judged. A secret is hidden whole."""

HEX = "0123456789abcdef"

# Every name of a secret contains one of these words. A search for words is much faster than a regular expression.
_STEMS = (
    "secret token pass pwd pw psk psw kata_sandi credential authorization authtok masterauth dockerconfigjson key auth sid session csrf xsrf otp mfa mdp urandom randombytes securerandom securestring salt "
    "kennwort senha contrasen clave wachtwoord parola heslo haslo lozinka salasana adgangskode geheimnis zugangsdaten jeton chave chiave "
    "sleutel zugang login creds log_in logged_in sign_in ssl_rand whoami_-t identifiants credenziali usuario benutzer pin puk code codigo totp frase appid rotat vpn wifi wi-fi wlan wpa jump_host ssid phrase mnemonic seed root admin account sops chamber doppler infisical ansible-vault nmcli base64 12_word 24_word below unten zugänge ログイン 登录 로그인 логин anmeld melde connexion conect entra_con accès acceso accesso basic認証 basic_auth basic-auth users ssh_ wallet metamask rbw app-spe tan: bw_unlock hmac user ftp hosting mailbox webmail imap mailkonto correo buzón konto router sudo unlock _zip _nas portal bastion nutzer utilisateur compte cuenta bitwarden it_will_ask separately ssh guest gäste gast invit truststore keystore phpmyadmin wp-admin idrac grafana jenkins wireless network_key network-key remember"
).split()
_FOREIGN = (
    "schlüssel clé contraseñ hasło lösenord şifre парол токен ключ парола jelszó κωδικός parolă mật_khẩu kata_sandi รหัสผ่าน पासवर्ड كلمة_المرور "
    "كلمة_السر סיסמה 密码 密碼 口令 密钥 密鑰 令牌 パスワード 暗証番号 キー 秘密鍵 共有鍵 パスフレーズ トークン 비밀번호 암호 키 토큰 비번 合言葉 凭证 パスコード 인증번호 验证码 驗證碼 コード código"
).split()
"""Names of secrets in other languages, in lower case. `_` is a space, as above."""

# A name, beginning at one of its words. Words without a group count only in a sentence.
_NAME = r"""(?x)(?P<pin>(?<![a-z])(?:pins?|puk|otp|tan(?=:))(?![a-z])|pin-?code|pass[_ -]?code|code(?<=zugangscode)|code(?<=türcode)|code(?<=bestätigungscode)|code(?<=sicherheitscode))
    |(?P<strong>secret|token(?<!expected[ ]token)(?!i[sz])|passw|pass[_ -]?(?:phrase|code|key)|pass(?![a-z])|pwd|(?<![a-z])(?:pw|psk|psw)(?![a-z])|pw(?<=_pw)(?![a-z])
    |_pat(?![a-z])|pw(?<=rootpw)|pw(?<=bindpw)|pw(?<=dbpw)(?![a-z])|pw(?=["']?[ ]?[:=])|credential|authorization|authtok|masterauth|dockerconfigjson
    |(?:wi-?fi|wlan|wireless|network)[ -](?:key|code|schlüssel)|code[ ](?:du[ ])?wi-?fi|passord|kennwort|senha|contrasen|clave|wachtwoord|parola|heslo|haslo|lozinka|salasana|adgangskode|geheimnis|chave|chiave|sleutel|mdp|passe(?<=mot[ _]de[ _]passe)|passe(?<=motdepasse)|passe(?<=palavra-passe)|key(?<=option[ ]key)(?=[ ]')|key(?=[ ]content)|securestring|[cx]srf(?<![a-z][cx]srf)(?![a-z])|totp|app-spe[cz]ifi\w{1,4}|creds(?![a-z])|zugangsdaten|identifiants|credenziali|frase[ -](?:senha|passe|de[ ]paso|secreta|semilla)|phrase[ ]secrète)
    |(?P<key>key(?<!user\.signingkey)(?![a-z]))
    |(?P<weak>(?<![a-z])(?:auth_users|auth|sid|session|mfa)(?![a-z])|sid(?<=sessid)(?![a-z])|session_?id(?![a-z])|csrf_?token|session(?<=_session)(?![a-z])|(?<![a-z])(?:salt|hmac)(?![a-z])|remember_?(?:me|token|user)|appid|rotat(?:ed|e|ing)(?![a-z]))
    |(?P<code>(?<![a-z])c[oó]d(?:e|igo)(?![a-z])|コード)
    |(?P<phrase>(?:12|24)[ ]words?(?![a-z])|wallet(?![a-z])|metamask|(?:(?:seed|recovery|backup|secret|mnemonic)[ _-]?)?phrase|mnemonic|(?<![a-z])seed(?![a-z]))
    |(?P<talk>login|ログイン|登录|로그인|логин|anmeld(?:en|e|ung)|meldet?[ ]sich|connexion|con[eé]ct(?:er|ar|ate|ez)|basic[ -]auth(?![a-z])|accès|accesos?(?![a-z])|accesso|basic認証|entra(?=[ ]con[ ])|log[ ]in|logged[ ]in|sign[ ]in|zug[aä]nge?(?![a-z])|jeton|usuario|benutzer)
    |(?P<place>(?<![\w/.-])(?:root|admin|accounts?|users)(?![\w-])|ssh[ ](?=in?to[ ]|[\w.-]+@)|(?<![a-z])(?:vpn|wi-?fi|wlan|wpa2?|jump[ ]host|ssid)(?![a-z]))
    |(?P<hint>(?<![a-z])(?:user(?:name)?|nutzer|utilisateur|s?ftp|ssh|sudo|hosting|mailbox|webmail|imap|mailkonto|correo|buzón|konto|router|portal|bastion|compte|cuenta|guests?|gäste|gast|invité|invitados?|phpmyadmin|wp-admin|idrac|grafana|jenkins|bitwarden)(?![a-z])|it[ ]will[ ]ask|separately|unlock|[ ](?:zip|nas)(?![a-z]))"""
_OPENS = r"(?:api|access|private|account|auth|encryption|signing|master|shared|app|application|admin|aes|hmac|fernet|crypto|cipher|subscription|functions?|storage|consumer|unseal|recovery|root|ssl|tls|vault|license|client|server|service|webhook|deploy|integration|ingest)(?:[_ .-]?|:\s{1,12})\Z"

_BEHIND = r"""(?x)(?P<suffix>[\w.-]{0,30}(?:[ ](?:\d{1,2}|value|ID|id)(?=[ \t]{0,3}[:(=]))?)(?:
    (?P<pair>\\{0,3}["']?[ \t]{0,4}(?::[ ]?\{|[,{:])?\s{0,40}(?:-[ ])?
        (?:(?:\\{0,3}"\w{1,30}\\{0,3}"[ ]?:[ ]?|\w{1,30}(?:[ ]{1,20}=|:)[ ])(?:\\{0,3}"[^"\n]{0,200}"|[\w.-]{1,30}|\{\}),?\s{1,40}|"\w{1,30}":(?:"[^"\n]{0,200}"|\w{1,30}|\{\}),){0,6}
        \\{0,3}["']?(?:[Vv]alue|VALUE|[Dd]efault|result)\\{0,3}["']?[ \t]{0,20}[:=][ \t]{0,4})
    |(?P<given>(?:\\{0,7}["'`][\]}]?|\}|\]|\*\*|[ ]?[(\[][^()\[\]\n]{1,30}[)\]])?[ \t]{0,12}
        (?:(?::[ \t]{0,4}[A-Za-z_&]|(?<=[ ])string)[\w.&']{0,30}[ \t]{1,4}=|\t(?=")|=>|:=|:-|\|\|=|->|→|：|＝|=|:(?!\?))(?![=:])(?:\*\*)?[ \t]{0,20}
        (?:(?:[Tt]oken|[Aa]pi[Kk]ey|SSWS|GenieKey|!!str)[ ]|\s{1,20}string\(\d{1,5}\)[ ]|base64:|(?:Some|ENC)\(|\[(?=["\']))?(?:[bBrRuU@L](?=["']))?)
    |(?P<passed>(?:\\{0,7}["'`][ \t]{0,4},|\()[ \t]{0,20}(?=\\{0,7}["'`])
        |["'][^<>\n]{0,60}?[ \t](?:\w{1,20}:)?value=(?=["'])
        |(?:["']?[ \t][^<>\n]{1,60}|["'])?/?>(?:\s{0,20}<value>|<!\[CDATA\[)?(?=[^<>\s\[\]]{1,200}(?:</|\]\]>))
        |\\{0,3}["'`\]})]{0,3}[ \t]{0,4}(?:\|\||\?\?|or)[ \t]{0,4}(?=["'`]))
    )(?P<quote>\\{0,7}(?:'''|\"\"\"|["'`])|(?<=(?i:pwd|ord)=)\{(?=[^{}\n]{5,60}\};)|)"""
_IS_UNIQUE = r"(?i)(?:public|applicationserver|pub|publishable|domain|site|host|peer|cache|partition|primary|foreign|sort|object|idempotency|row|index|map|dict|group|item|dedup|deduplication|unique|natural|surrogate|translation|i18n|react|list|hash|range|tag|label|shortcut|hot)[_ .-]?\Z"

# Values of a command's option, an SQL statement, or a line of configuration. Group 1 stays, the
# last group goes. The first word of the entry must be in the text, in lower case.
_TOOL = r"(\b(?:{0})\b[^\n|;&]{{0,200}}?[ \t]{1}[\"']?)((?<=[\"'])[^\"'$<>\n./]{{6,60}}(?=[\"'])|[^\s\"'$<>|]{{6,200}})"
_ATTACHED = _TOOL.format(r"(?:mysql|mariadb|sshpass|7z|(?:un)?rar)[\w-]{0,10}", r"-h?p(?!:)")
_APART = _TOOL.format(r"login|redis-cli|(?:un)?zip|ldap\w{3,10}|openssl|plink|pscp|psftp|putty|sshpass|mongo\w{0,10}|cqlsh|curl|smtp\w{0,10}|useradd|rsync", r"-(?:p|a|P|w|k|K|pw)[ \t]{1,4}")
_USER = r"[\"']?[^\s:\"'$/]{1,64}:)([^\s\"'$/][^\s\"'$]{5,200})"
_TO_STDIN = r"(?=[\"']?[ ]{0,3}\|[^\n|]{0,120}(?:-stdin|-token\b|sudo[ ]-S|kinit|cryptsetup|passphrase|askpass|secrets? (?:versions )?(?:add|create|set|put)\b|(?:passwd|login)(?![\w.])))"
_PGPASS = r"((?:\A|\n|echo [\"'])[\w.*-]{1,100}:(?:\d{2,5}|\*):[\w.*-]{1,60}:[\w.*-]{1,60}:)([^\s:/][^\s:\"']{7,100})(?=[\n\"']|\Z)"
_SQL_WORDS = "create|identified|alter|set|grant|attach|update|select|insert|with|role|user|login|encrypted"
_SQL = rf"((?i:\b(?:{_SQL_WORDS})\b[^\n;]{{0,200}}?(?:(?:\b|_)(?:by|as|pass(?:wor|w)?d?|pwd|secret|for[ ][^\n;=]{{1,80}}=))[ (=]{{0,4}}(?:(?:password|md5|sha\d?|crypt)[ (]{{1,3}})?N?)['\"])([^\s'\"$<][^\s'\"<]{{5,200}})(?=['\"])"
# The last quoted argument of a call that signs, encrypts, or logs in.
_LOGS_IN = r"(?i)auth\w*[ ]?[=:]?[ ]?\(|log_?in\("
_LOGIN_CALL = r"(?:log_?in|sign_?in|auth|connect|connection|credentials?|account|begin|create_?(?:super)?user|pdo)[ ]{0,2}[=:]?[ ]{0,2}\([^\n]{0,200}(?<=,)[ ]?"
_CALL = r"((?i:" + _LOGIN_CALL + r"|(?:fernet|hmac(?:\.new)?|totp|jwt\.\w{1,20}|(?:en|de|b)?crypt(?:\.\w{1,20})?)\([^\n]{0,200}(?<=[( ,]))b?[\"'])(?P<judged>[^\s\"'$][^\s\"']{7,400}|(?:[a-z]{4}[ ]){3}[a-z]{4})(?=[\"'])"
_A_CODE = r"(?=[\w -]{0,12}\d)(?:\d{3} \d{3}\b|[A-Za-z0-9]{4,6}(?:[ -][A-Za-z0-9]{4,6}){1,5}|(?:[a-z0-9]{8,16}|[A-Z0-9]{8,16}|[0-9a-f]{32,64}|\d{6,8})(?=[\"',]| \d|\s{0,4}(?:\n|\Z)))\b"
_NEXT_CODE = r"[\s,\"'`*-]{1,20}(?:\d{1,2}[.)]\s{1,2})?"
_CODE = r"((?i:(?:(?:(?:recovery|backup|scratch|emergency|rescue|one-time|2fa)[ _-](?:verification[ ])?|wiederherstellungs|notfall|herstel)codes?|c[oó]d(?:igos?|es?)[ ]de[ ](?:recuperaci[oó]n|respaldo|secours|récupération|recuperação)|codici[ ]di[ ](?:recupero|backup)|коды[ ]восстановления|резервные[ ]коды|(?:リカバリー|バックアップ|復旧|回復)コード|(?:恢复|备用|备份|復原|备用验证)(?:代?码|代碼))[\"']?(?:[^\n:=]{0,60}[:=\n]|(?:[^\n]{0,160}\n){1,3}?(?=[ \t>*-]{0,9}(?:\d{1,2}[.)][ ])?\S{8,70}\s{1,20}\S{8,70}\s))|(?i:two-factor|2fa)[^\n]{0,80}\n)(?:[\[ ]{0,3}" + _NEXT_CODE.replace("{1,20}", "{0,20}", 1) + "))(" + _A_CODE + "(?:" + _NEXT_CODE + _A_CODE + "){0,30})"
_BASE32 = r"(?:[A-Z2-7]{4} ){3,15}[A-Z2-7]{4}|(?=[a-z ]{0,40}[2-7])(?:[a-z2-7]{4} ){3,15}[a-z2-7]{4}|(?:[a-z2-7]{4} ){7}[a-z2-7]{4}|(?=[a-z ]{0,40}\d)(?:[a-z0-9]{4} ){3,15}[a-z0-9]{4}|[A-Z2-7]{16,64}"
_MAY_BE_BASE32 = r"[ A-Z2-7](?:(?<=[A-Za-z0-9]{4} )[A-Za-z0-9]{4} [A-Za-z0-9]{4} [A-Za-z0-9]{4}|[A-Z2-7]{15})"
_TOTP = r"((?i:\b(?:setup|totp|2fa|mfa|authenticator|new)[ _-]?(?:secret[ ])?(?:key|secret)(?:[ ](?:is|manually))?[\"']?[ ]{0,3}[:=]?|(?:set up|enable)[ ](?:mfa|2fa|totp)[ ]with[ ]key|(?:manual(?:ly)?(?: entry key)?|by hand|authenticator)\b[^\n:]{0,60}:?|oathtool[ ][^\n|]{0,60}?)\s{1,8}[\"']?)(" + _BASE32 + r")(?!\w)"
_HASH = r"((?i:passw(?:or)?d[_-]?hash)[\"']?[ ]{0,3}[:=][ ]{0,3}[\"']?)([0-9A-Fa-f]{32,128})(?!\w)"
_FLAG_VALUE = r"((?<=\s)-(?:p|P|w|a|A|X|x|pass|pw|storepass|keypass)[ =]?[\"']?)((?=[^\s]{0,60}[a-z])(?=[^\s]{0,60}[A-Z])(?=[^\s]{0,60}\d)[^\s\"'$/:.,=]{8,100})(?=[\"']?(?:\s|\Z))"
_OPTIONS = (
    *((tool, r"(\b(?:curl|https?|ab)\b[^\n|;]{0,200}?[ \t](?:-[uUaAP]|--user|--proxy-user|--auth)[ =]?" + _USER) for tool in ("curl", "http -a", "ab -")),
    *((tool, _ATTACHED) for tool in ("mysql", "mariadb", "sshpass", "7z ", "7za ", "7zz ", "rar ")),
    *((tool, _APART) for tool in ("login ", "redis-cli", "zip -", "ldap", "openssl", "plink", "sshpass", "mongo", "cqlsh", "useradd")),
    *((tool, _TOOL.format(program, option)) for tool, program, option in (
        ("smbclient", "smbclient", r"-U[ \t]{0,4}[\"']?[\w.\\@-]{1,60}%"), ("rpcclient", "rpcclient", r"-U[ \t]{0,4}[\"']?[\w.\\@-]{1,60}%"), ("freerdp", "[wx]?freerdp", "/p:"),
        ("ssh-keygen", "ssh-keygen", "-[NP][ ]"), ("swaks ", "swaks", "-(?:ap|-auth-password)[ ]"), ("mosquitto_", "mosquitto_(?:pub|sub|rr)", "-P[ ]"),
    )),
    ("lftp ", r"(\blftp\b[^\n|]{0,200}?[ ]-u[ \t]{1,4}[^\s,]{1,60},[\"']?)([^\s\"'$]{5,200})"),
    *((word, r"(\b(?:sqlplus\b[^\n|;]{0,60}?[ \t][\"']?|oracle:thin:)[\w.$]{1,60}/)([^\s\"'@/]{6,200})") for word in ("sqlplus", "oracle:thin:")),
    ("rabbitmqctl", r"(\brabbitmqctl[ ][^\n|;]{0,60}?(?:add_user|change_password|authenticate_user)[ ]\S{1,60}[ ])([^\s$]{6,200})"),
    ("net use", r"(\bnet[ ](?:user[ ]\S{1,60}|use\b[^\n]{0,100}?[ ]\\\\[^\s]{1,100}(?:[ ]/user:\S{1,60})?)[ ])([^\s/*\"'][^\s\"']{5,200})"),
    # Any command: the letters distinguish a password from a file, port, or name.
    *((flag, _FLAG_VALUE) for flag in (" -p", " -w ", " -a ", " -x ")),
    ("<<<", r"(\b(?:sudo[ ]-\w*S|chpasswd|passwd|kinit|cryptsetup|--password-stdin)\b[^\n|;]{0,120}<<<[ ]?[\"']?(?:\w{1,32}:)?)([^\s\"'$]{6,200})"),
    *((word, r"(\b(?i:auth(?:enticate)?)[ ]PLAIN[ ])([\w+/]{12,400}={0,2})") for word in ("auth plain", "authenticate plain")),
    ("ugfzc3dvcmq6", r"(334[ ]UGFzc3dvcmQ6\s{1,3}(?:[CS<>]{1,3}:?[ ])?)([\w+/]{8,400}={0,2})"),  # asks for the password in base64
    ("send ", r"(\bsend[ ](?:--[ ])?\")(?P<judged>[^\s\"\\]{6,200})(?=\\[rn]\")"),  # expect
    *((word, r"(\b(?:reset|invite|verify|confirm|activate|magic)[\w-]{0,20}[/?](?:\w{1,12}=)?)(?P<judged>[\w.-]{20,400})") for word in "reset/ reset-password/ invite/ verify/ confirm/ activate/ magic/ magic-link/ reset? reset-password? invite? verify? confirm? activate? magic?".split()),
    *((word, r"(://[^\s\"'`<>]{4,100}/(?:v[1-4]|push|hooks?|webhooks?|ping)/)(?P<judged>(?![0-9a-f]{40}\b|[0-9a-f]{64}\b)[\w-]{32,64})(?=[\s\"'`<>?]|\Z)") for word in "/v1/ /v2/ /v3/ /v4/ /push/ /hook/ /hooks/ /webhook/ /webhooks/ /ping/".split()),
    *((word, r"(\b(?:echo|printf)[ ](?:-\w{1,3}[ ]|[\"']?%s(?:\\n)?[\"']?[ ])?[\"']?(?:\w{1,32}:)?)([^\s\"'$|]{6,200})" + _TO_STDIN) for word in ("echo", "printf")),
    *((word, _SQL) for word in ("identified", "password '", "password = '", "password n'", "secret '", "set password for", "md5('", "sha1('", "sha2('", "crypt('", "password('")),
    *((word + "(", _CALL) for word in ("login", "auth", "connect", "account", "begin", "pdo", "connection", "credential", "credentials", "user", "fernet", "hmac", "hmac.new", "totp", "crypt", "sign_in", "signin", "auth=", "auth = ", "auth: ")),
    *((word, _CALL) for word in ("jwt.", "bcrypt.")),
    ("community", r"(\b(?i:(?=\S{1,60}[ ]\S{1,60}[ ]r[ow]\b|r)(?:r[ow])?community)[ ])([^\s\"'<]{6,60})(?=\s)"),
    (":*:", _PGPASS),
    *((f":{port}", _PGPASS) for port in ("543", "643", "654")),
    ("authorization", r"((?i:authorization[\"']?[ ]{0,3}[:=][ ]{0,3}[\"']?(?:digest|aws4-hmac-sha256|hmac|signature)[ ][^\n]{0,400}?(?:response|signature|sig|mac)=)\\{0,3}[\"']?)([A-Za-z0-9+/=_-]{20,200})"),
    ("verification codes", _CODE),
    *((word + sign + "code", _CODE) for word in ("recovery", "backup", "scratch", "emergency", "rescue", "one-time", "2fa") for sign in " _-"),
    *((word, _CODE) for word in ("wiederherstellungscode", "notfallcode", "herstelcode", "códigos de", "codes de", "codigos de", "codici di", "коды восстановления", "резервные коды", "two-factor", "コード", "恢复代码", "恢复码", "备用码", "备用代码", "备用验证码")),
    *((word, _HASH) for word in ("password_hash", "password-hash", "passwordhash", "passwd_hash")),
    *((word + " " + thing, _TOTP) for word in ("setup", "totp", "2fa", "mfa", "authenticator") for thing in ("key", "secret")),
    ("with key ", _TOTP),
    *((word, _TOTP) for word in ("oathtool", "new secret key", "manual", "authenticator")),
    *((word, r"((?:\A|\n)(?i:[\w.]{0,30}(?:passphrase|psk)[ ]?=|(?:enter )?passphrase(?: [^\n:]{1,80})?:)[ ])(?!(?i:the|a|see|siehe|no|use|same|from|your|any|get|wpa|none|not|must|can)\b|[^\n]*\b(?i:file|value|vault|config|page|passphrase)\b)((?:[^\W\d_]+[ ]){1,7}\w+)(?=[ \t]*(?:\n|\Z))") for word in ("passphrase", "psk")),
    *((word, r"(\b(?i:alarm\w{0,6}|(?:haus)?tür|door|safe|tresor|zutritt|entrance|keypad|garage|porte|puerta|serverraum|lockbox)\b[^\n\d]{0,50}?(?:(?i:code|combination|kombination|código|zahl)\b[^\n\d]{0,30}|[ ]?[:=][ ]|\b(?:is|ist|now|jetzt|est|es)[ ]))(\d{4,8}[A-Z#*]?|\d{2}(?:-\d{2}){2,4})(?![\w/-]|[.:]\d|[ ]?(?:ms|sec|min|px|%))") for word in ("alarm", "door", "safe", "tresor", "zutritt", "tür", "entrance", "keypad", "garage", "porte", "puerta", "serverraum", "lockbox")),
    *((word, r"((?i:(?<![a-z])(?:pin|puk|geheimzahl|passcode)(?![a-z]))[^\n\d]{0,30}(?:[:=]|\bis\b|\bist\b|\n)[\s\"']{0,20})(\d(?:[ ]\d){3,7}|\d{3}-\d{2}-\d{3})(?![\w-])") for word in ("pin", "puk", "geheimzahl", "passcode")),
    *((word, r"((?i:(?:schlüssel|key|passw\w+|psk|kennwort)[^\n\d]{0,20})\s{1,8})(\d{4}(?:[ ]\d{4}){3,4})(?!\S)") for word in ("schlüssel", "wpa", "wifi", "wlan", "wi-fi", "kennwort")),
    *((word, r"(\bdefine\(\s{0,3}'\w{0,40}(?:KEY|SALT)',\s{0,12}')(?=[^'\n]*[^\w\s'])([^'\n]{20,100})(?=')") for word in ("define('", "define( '")),
    ("login ", r"(\bLOGIN[ ]\"?[\w.@+-]{1,60}\"?[ ]\"?)([^\s\"]{6,200})"),  # IMAP
    (".tochararray()", r"(\")(?P<judged>[^\s\"]{8,200})(?=\"\.toCharArray\(\))"),
    # A line for a user, and the next one for a password: there it can be anything.
    *((word + ":", r"((?i:(?:user|benutzer|nutzer)(?:[ _]?name)?|login|e?-?mail|usuario|utilisateur|konto|account)[ ]?:[ ]?\S{1,60}\s{1,20}(?:[>*-][ ])?(?i:pass(?:word|wort)?|pw|pwd|kennwort|contraseña|mot de passe|senha|clave|парол[ьb]|パスワード|密码)[ ]?:[ ]?)(?P<word>[^\s\"'<>{}$,]{4,60})(?=[ \t]*(?:\n|\Z))") for word in ("user", "username", "login", "mail", "benutzer", "benutzername", "usuario", "utilisateur", "konto", "account", "nutzer")),
    *((word, r"((?:\A|\n)(?:\[sudo\] |Enter (?:current )?|\S{1,40}'s )?[Pp]assword(?: for [^\n:]{1,60})?: )(?P<word>[^\s\"'<>{}$,]{5,60})(?=\n|\Z)") for word in ("password for ", "enter password: ", "'s password: ")),
    *((word, r"(?i)((?:password|authentication|credential)\([\"'][\w.@-]{1,60}[\"'],[ ]?[\"'])(?P<judged>[^\s\"']{6,200})") for word in ("password(", "passwordauthentication(", "credential(")),
    *((sign + key, r"([?&;](?i:passw(?:or)?d|pwd)=)(?P<word>[^\s&;\"'<>${}]{5,100})") for sign in "?&;" for key in ("password=", "passwd=", "pwd=")),
    *((word, r"(\s(?:-[uUl]|--user(?:name)?)[ =]?\S{1,60}[ ](?:[^\n|;]{0,100}?[ ])?-(?:P|A|X|pw|pass)[ ][\"']?)(?P<literal>[^\s\"'$<>/]{6,60})") for word in (" -u", " -l ", " --user")),
    ("wifi:", r"(WIFI:[^\n]{0,100}?P:)([^\s;]{6,100})(?=;)"),
    ("accounts: [", r"(\baccounts: \[\s{0,20}[\"'`])(0x[0-9a-f]{64})"),
    ("htpasswd -", r"(\bhtpasswd[ ](?:-\w+[ ]){0,3}(?:-\w*b\w*n\w*|-\w*n\w*b\w*|-\w*b\w*[ ]\S{1,200})[ ]\S{1,60}[ ][\"']?)([^\s\"'$]{6,200})"),
    ("auth ", r"((?:\A|\n|> )AUTH[ ](?:[\w.-]{1,40}[ ])?)(?P<literal>[^\s\"']{6,200})(?=\s|\Z)"),
    *((word, r"(?i)(key\w{0,10}\"?\s?[:=]\s?)(\[(?:\s?\d{1,3},){15,63}\s?\d{1,3}\s?\])") for word in ("key: [", "key = [", "key=[", 'key": [')),
    ("_auth=", r"(_AUTH=[\"']?[\w.-]{1,40}[/:])([^\s\"'$/]{5,100})"),
    *((word, r"((?:mysqli(?:_connect)?|PDO(?:->__construct)?|getConnection)\((?:[\"'][^\"'\n]{0,200}[\"'],[ ]?){2}[\"'])([^\"'\n]{5,100})(?=[\"'])") for word in ("mysqli(", "mysqli_connect(", "__construct(", "pdo(", "getconnection(")),
    *((word, r"(\bconn(?:ect)?[ ][\w.$]{1,60}/)([^\s\"'@/]{6,200})(?=@)") for word in ("connect ", "conn ")),
    ("wpa_passphrase", r"(\bwpa_passphrase[ ](?:\"[^\"\n]{1,40}\"|\S{1,40})[ ][\"']?)([^\s\"'$]{8,63})"),
    *((word, r"(\bACL SETUSER[^\n]{0,100}? >|\bschtasks\b[^\n]{0,300}? /rp | : (?:EAP|XAUTH|PSK) \"|/private-(?=[0-9a-f]{32}/))([^\s\"/]{5,200})") for word in ("acl setuser", "schtasks", ": eap", ": xauth", "/private-")),
    *((sign + word + "=", r"([?&](?:auth|secret|token)=)(?P<judged>[^\s&;\"'<>${}]{6,300})") for sign in "?&" for word in ("auth", "secret", "token")),
    ("pass:", r"(-pass(?:in|out|wd)?[ ][\"']?pass:)([^\s\"'$]{6,200})"),
    ("mc ", r"(\bmc[ ](?:alias[ ]set|config[ ]host[ ]add)[ ](?:\S{1,200}[ ]){3})([^\s\"'$]{6,200})"),
    *((f"{word} ", r"(\s--?(?!ask)(?:[\w-]{1,20}-|src|dest|store|key){0,2}(?:passw(?:or)?d|passphrase|pass|pwd|pw)[ ][\"']?)(?P<literal>(?![-\[])(?:(?<=[\"'])[^\"'$<>\n]{6,60}(?=[\"'])|[^\s\"'<>$]{5,200}))") for word in ("-password", "-passwd", "-pass", "-passphrase", "-pwd", "-pw", "storepass", "keypass")),
    *((word, r"(\bresult\"?[ ]{0,12}[:=][ ]\")([^\s\"]{8,200})(?=\",?\s{1,40}\"?special\b)") for word in ('result"', "result =", "result  ")),
    *((kind + " answer", r"((?i:secret|security)[ ]answer(?:[ ]is|[ ]?[:=])[ ][\"']?)((?=[A-Z\d])[^\s\"'.]{4,60})") for kind in ("secret", "security")),
    ("code=", r"([?&]code=)([\w%/.-]{16,400})(?=[^\s]{0,300}[?&]state=)"),
    *((word, r"(::add-mask::|issecret=true\]|::set-output name=[\w-]{0,40}?(?i:token|secret|pass|pw|key)[\w-]{0,40}::)(?!\d+\s)(\S{6,200})") for word in ("::add-mask", "::set-output", "issecret=true]")),
)  # fmt: skip
_COOKIE = r"(?i)cookie\b[\"']?[ \t]{0,3}[:=][ \t]{0,3}[\"']?|\s-b[ =]?[\"']|cookie[ =][\"']?"
_COOKIE_VALUE = r"([\w.-]{1,60}=)([^\s;,\"'\\]{16,2000})"

# A value ends at its quote, at a space, or at a character that no unquoted value contains.
_INSIDE = {
    "{": r"[^\n}]",
    '"': r'(?:[^\s"\\]|\\[^\s])',
    "'": r"(?:[^\s'\\]|\\[^\s])",
    "`": r"(?:[^\s`\\]|\\[^\s])",
    '\\"': r'(?:[^\s"\\]|\\(?!"))',
    "\\'": r"(?:[^\s'\\]|\\(?!'))",
    "\\`": r"(?:[^\s`\\]|\\(?!`))",
    "escaped": r"(?:[^\s\"'`\\]|\\(?![\"'`\\]))",
    "line": r"(?:[^\s\"'`<>\[\]&]|&(?![\w-]{1,30}=))",
    "": r"(?:[^\s\"'`,;<>(){}\[\]\\&，。；、」“”]|&(?![\w-]{1,30}=)|\\(?![\"'nrt]))",
}  # fmt: skip

_MARK = r"\[redacted:[a-z-]+\]"
_NOT_SECRET = r"""(?xi)[$%{<]|[*]{2}|[*][a-z_]\w*(?:\.[a-z]\w*)*\Z|\[[\w -]{1,40}\]\Z|x{4}|\.{2}|-|@|\(|&
    |(?:[a-z]{2,9}:)?(?:[0-9a-f]{2}:){3,}[0-9a-f]{2}\Z
    |(?:https?|file|env|vault|op|arn|npm|workspace|sha\d{1,3}|md5|ssm)[:]
    |your|my[-_]|redacted|example|placeholder|changeme(?!\d+[!?#$*])|insert|replace|todo|fixme|tbd|(?:ask|see|put|fill|enter|use|set|same|some|dein|deine|votre|tu|change|choose)[-_ ]
    |(?-i:(?=(?:[a-z0-9]+-)*(?:token|secret|password|key)s?(?:-|\Z))[a-z]+(?:-[a-z0-9]+)+\Z)
    |\.{0,2}/[\w@.-]{0,40}/|\.{1,2}[/\\]|~[/\\]|[A-Za-z]:\\
    |(?:\d:)?[\^~<>=v]{0,3}\d{1,4}(?:\.\d{1,4}){1,3}(?![A-Za-z0-9])[\w.+~-]{0,40}\Z
    |\d{4}-\d\d-\d\d(?![a-su-z0-9])
    |[\d.,_]{1,7}[a-z]{0,3}\Z|0x[0-9a-f]{40}\Z|(?-i:[0-9A-F]{24})\Z|scram-sha|[a-z_]{1,40}\}\}|![a-z_-]{1,40}\Z|(?:Ctrl|Cmd|Alt|Shift)\+
    |[A-Z]{1,20}=[a-z]{1,20}\Z
    |(?:process|import\.meta|Deno|Bun)\.env\b|(?:required|nullable|sometimes|string|min|max)(?:[|:]\w{1,20})+\Z
    |[a-z_][\w.:]{2,60}(?:\([^()]{0,60}\)|\[[\w, .]{0,60}\])\Z|1password|(?:pbkdf2|bcrypt|argon2\w{0,2}|sha\d{1,3}|scrypt)(?:\b|[_-]?(?:with|sha)\w{1,20}\Z)|(?-i:[A-Z]{2,20}(?:_[A-Z]{1,20}|_[A-Z]?\d{1,2}){1,6}|[a-z]{2,20}(?:_[a-z]{1,20}|_[a-z]?\d{1,2}){1,6})\Z
    |[\w-]+(?:\.[\w-]+)*\.(?:com|org|net|io|dev|app|cloud|local|internal)(?:[:/]|\Z)
    |.{0,200}(?:(?:\(\)|[:…]|(?-i:EXAMPLE(?:KEY)?))\Z|a-z|0-9)"""
# A quoted value with such a beginning can still be a password.
_PLACEHOLDER = r"\$\{|\$\(|\{\{|\{[^{}]*\}\Z|%\(|%\w*%\Z|<[^<>]*>\Z|<%|\([\w, .]*\)\Z|@@|@\w+\(|@?/|&[a-z]{2,6};|-{1,2}[A-Za-z][a-z-]*\Z"
_REFERENCE = r"[$@%&][A-Za-z_]\w*(?:\.\w+)*\Z"
_NOT_VALUE = r"(?:^|[_.-]|(?<=[a-z0-9])(?=[A-Z]))(?i:names?|file(?:name)?|path|dir|url|uri|endpoint|type|kind|version|count|length|size|limit|ref|arn|expir\w*|ttl|at|policy|template|page|form|view|title|subject|header|prefix|regex|pattern|fields?|placeholder|label|tooltip|hashing|hasher|algorithm|strategy|backend|provider|class|smanager|ids?|hash|sha\d{0,3}|md5|digest|checksum)$"
_WORD_AND_NUMBER = r"[^\W\d_]{3,20}\d{2,12}[!#$%&*?+]"
# Values that people make up: a word, a sign, and a number; two words and a number, which can be a name too.
_WORD_SIGN_NUMBER = r"[^\W\d_]{3,20}[@_#*+~]\d{2,12}[!?]?"
_MADE_UP = r"(?=\S*[A-Z])[A-Za-z][a-z]{2,11}[-._][A-Za-z][a-z]{2,11}[-._]?\d{1,4}[!?$*]?|[A-Z][a-z]{2,11}[A-Z][a-z]{2,11}\d{2,4}[!?$*]?|[A-Z][a-z]{3,11}[-.]\d{2,4}[!?$*]|[A-Z][a-z]{5,11}\d|[a-z]{4,20}[!@#$&*]\d{1,4}|[a-z]{3,12}-[a-z]{3,12}-\d{2,6}"
_LIST_ITEM = r"[a-z0-9_&-]*|[A-Za-z_-]*"
# What stands where a password would, and is none: types, states, labels, words that join others, and names of algorithms.
_NO_CHOICE = frozenset((
    "string str text bytes bytea byte char varchar boolean bool number integer object array buffer optional option required nullable null none nil true false undefined unknown any void never default value values "
    "empty blank hidden masked redacted removed omitted sensitive insensitive encrypted hashed encoded decoded plain plaintext plain-text invalid valid incorrect correct wrong missing expired disabled enabled inactive active locked "
    "changed unchanged stored generated random provided supplied given unset yes no pass passed fail failed failure error ok okay success test testing example sample placeholder dummy changeme changeit secret admin root user username email login "
    "only based protected free less specific level side time date term lived proof safe case read write multi single factor auth basic bearer digest include omit same origin origin-only your enter must should please type input form field prompt "
    "label hint here there obligatoria obligatorio pflicht pflichtfeld vergessen requis ändern erforderlich requerida requerido wymagane wymagany obligatoire verplicht povinné zorunlu "
    "tests suite lint build unlock lock forgot confirm reset change show hide view store storage manager service server client config settings policy hash hashing encoder validator strength length min max chars characters digits html json yaml"
).split())  # fmt: skip
_JOINS = frozenset("this that with from into when then than out up to of by in on at off end non pre built hard soft well self long short one the only old new current".split())
# What the names of things in code and in a computer centre are made of, and passwords seldom are.
_TECHNICAL = frozenset((
    "api app apps auth backend backup bastion beta bin bot branch bucket build cache candidate cert channel checkout ci class client cloud cluster cms code com command commit component config conf container content controller copy core cpu cron css customer dashboard data database db debug default deploy deployment desktop dev device disk dns docker docs domain email endpoint engine env error event export feature feat file files fix fixture flag folder frontend function "
    "gateway global group gpu gw handler helper home hook host hotfix http https id image import index infra ingress input instance int internal issue item job kernel key lambda large latest legacy lib library linux list load local log login mac mail main manager master medium memory merge message meta micro migration mobile mock model module monitor mount nano nas net network next node note object office operator option order org output package page fritz box konto "
    "facture rechnung auftrag beleg buchung bericht angebot projekt kunde kunden invoice pedido factura booking chapter kapitel seite halle raum room episode season vlan guide runbook meeting protokoll liste bugfix standard base encoder decoder unicode iso utf charset panel parser part path patch phase pipeline platform plugin pod point policy pool port portal preview primary private prod product production profile project proxy public pull push query queue read ready redis region registry release remote replica report "
    "repo request resource response result review rev role root route router rule run runner sandbox schema script search section secret server service session set setup shared shell site size small sprint sql src ssh stage staging standby stat state static status step storage store stream style sub subnet support svc sync system table tag task team temp template test tests theme thread ticket tool trace type ui unit update upload url user users util utils vault version "
    "ver view vm volume vpc vpn web webhook widget win windows wifi worker workflow workspace write zone ubuntu debian fedora alpine macos python java ruby postgres postgresql mysql mongo nginx apache kafka us eu ap east west north south central"
).split())  # fmt: skip
_ALGORITHM = r"(?i).*x{4}|(?:base|utf|latin|rfc|iso|oauth|sha|md|aes|rsa|argon|pbkdf|bcrypt|scrypt|hmac|ipv|http|python|node|php|java|win|(?:x|v|es|ed|hs|rs)(?=\d+(?![a-z\d]))|ntlm|pkcs|tls|ssl|fido|saml|i18n|k8s|log4j|step|level|error|option|type|test|user|page|field|param|arg|var|line|chapter|version|part)[-_ ]?\d"
_CHOSEN = r"[^\W_](?:[^\s\"'`<>|,;:=@/\\(){}\[\]“”「」『』，。；：]|(?<!^)[@;](?=\w)){3,38}[^\s\"'`<>|,;:=@/\\(){}\[\].“”「」『』，。；：…]"
_FILE = r"(?i)\.(?:[jt]sx?|py|md|go|rs|rb|java|ya?ml|json|toml|te?xt|html?|s?css|vue|sh|[ch]|cc|cpp|cs|kt|php|sql|xml|csv|lock|cfg|conf|ini|env|log|pem|key|crt|pub|png|svg|jpe?g|gif|pdf|zip|gz|tar|exe|dll|so|db|kdbx?|jks|p12|pfx|gpg|asc|bak|tf|swift|lua|exs?|proto|com|org|net|io|dev|app|de|eu|local|internal)\Z"
_PASSWORD_KEY = r"(?i)(?:pass(?:w(?:or)?[dt]|wort|word|phrase|code|e)?|pwd|pw|psk|psw|mdp|kennwort|senha|contrase(?:ñ|n)a|clave|wachtwoord|heslo|parola|salasana|adgangskode|passe|has[lł]o|пароль|lösenord|şifre|jelszó|密[码碼]|口令|パスワード|비밀번호)s?[_-]?\d{0,2}"
_IDENTIFIER = r"[A-Za-z_$][\w$]*(?:(?:\.|::|\?\.|->)[A-Za-z_$][\w$]*)*"
_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_NO_CELL = r"[A-Z]{2,}-[\w-]+\Z|.*\d\.\d+\Z|\w+(?:\.\w+)*[(\[]|[A-Z_\d]+\Z|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+\Z|" + _UUID + r"\Z"


def assigned(text: str, lowered: str, places: Places) -> list[tuple[int, int]]:
    """Return the spans of all named secrets in `text`. `places` are those of the `literals_of_values`."""
    spans = [*_option_values(text, places), *_cookie_values(text, places)]
    positions = sorted({at for stem in places if stem in _stems() for at in places[stem]})
    if positions:
        names = [name for name in _names(lowered, positions) if name[0] != "pass" or not _compiled(_NO_PASS).search(text, max(0, name.start() - 5), name.start())]
        quiet = {name.start() for name in names if name.lastgroup in _QUIET_ONLY and name.lastgroup != "talk"}
        lines = _lines(text, [at for at in positions if at not in quiet])
        spans += [*_named_values(text, lowered, names), *_table_cells(text, lines), *_values_below(text, names, _lines(text, positions))]
        spans += [*_handed_over(text, names), *_passphrases(text, names), *_spoken_values(text, lowered, names), *_pairs(text, names)]
    return [*spans, *_again(text, spans)]


def _again(text: str, spans: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield where the first `REPEATED` random values of `spans` are in the text."""
    values = sorted({text[start:end] for start, end in spans if end - start >= MIN_REPEATED})
    for value in values[:REPEATED]:
        if is_random(value[:JUDGED_CHARACTERS]) or (_chosen(value) > 2 and any(map(str.isdigit, value))):
            yield from ((at, at + len(value)) for at in occurrences(text, value))


# What precedes a command in a shell, a statement in a database's client, and an expression in a REPL.
_PROMPT = r"(?:[\w.@~:/\\()\[\] -]{0,60}[$#%❯➜>]|PS [^>\n]{0,60}>|>>>|In \[\d{1,4}\]:|\(Pdb\))[ ]+(?=\S)|[ ]{2,8}(?=(?:kubectl|gcloud|aws|az|vault|op) )"
# Words of a command: what it prints, that it does, that it prints other things than values, and that it makes a new secret.
_THING = r"(?i)passw(?:or)?d|passphrase|pgpass|secret|token(?!iz)|credential|(?:api|access|private|signing|encryption|master|auth|account|license|unseal)[ _.-]?keys?(?![a-z])|[a-z]_(?:pass|pw|key|salt)\b|(?<![a-z])keys?(?= list)|list-?keys|(?<![a-z])key(?=:gen)|keyring|op://|psks?\b|with-decryption|\bunseal\b|\brbw get\b|\.auth\b|\bcat \S*\bauth(?:\.txt)?$|\b(?:sops (?:-d|decrypt|exec)|chamber (?:read|export)|doppler (?:secrets|run)|infisical (?:secrets|export)|akeyless|conjur|credstash|rbw get|heroku config|railway variables|pulumi (?:config get|stack output)|ansible-vault (?:view|decrypt))\b|\becho \S{12,} ?\| ?base64 (?:-d|-D|--decode)|-field=(?:pin|puk|code|key)\b|nonsensitive|\bbw unlock|auth_?string|\bvault (?:kv get|read)\b"
# One of these is in every text that `_THING`, `_MAKES`, or `_PRINTS_CODE` matches.
_OF_SECRETS = "pass secret token credential key pw salt op:// psk decryption unseal rbw auth sops chamber doppler infisical conjur credstash heroku railway pulumi vault base64 -field= nonsensitive unlock private rand whoami otp oathtool accounts".split()
_PRINTS = r"(?i)(?<![a-z])(?:sops|unlock|console|get|show|reveal|read|view|access|print\w{0,6}|cat|lookup|decrypt|export|dump|generate|gen|fetch|output|jq|yq|dotenv|base64|initial|find-generic\w*|create|new|issue|rotate|reset|lpass|bw|extract|login|list-?keys|keys list)(?![a-z])|\s-(?:dq?|w)\b|[ :.-](?:token|secret|password|(?:api|secret)-?key)(?=\s+-|\s*$)|Get\w{0,30}Var|^(?:sed|awk)\b|(?:echo|println?|puts|console\.log|Write-\w+)\b[^|;&]*[$%]"
_LISTS = r"(?i)(?:^|[\s|;&(])(?:ls|find|wc|md5\w*|sha\d{1,3}\w*|man|which|git(?! config| credential)|curl[^|]*$|wget[^|]*$|npm (?:test|run)|pytest|go test|cargo)(?:\s|$)|(?:grep|rg) -\w*[lc]|--list\b|(?<!keys )(?<!key )\blist(?!-?keys|-publishing| items)|\bls\b|metadata get|describe|secrets? (?:create|set|put|delete|rm|add)|-o name|accessor|(?:(?-i:[a-z](?:Id|Arn|Name|Url))|(?<!secret)[_.](?:names?|id|uid|arn|url))[\"'}\])]*\s*(?:$|[|;&\n]|-o\b|--output)|(?:cat|head|tail|less|bat|sed|awk|grep|rg)\b[^|;&]*\.(?:[jt]sx?|py|md|go|rs|java|rb|php|html?|css|csv|pub|pem)\b"
_MAKES = r"(?i)\bjq\b[^|]*\.\w*(?:secret|passw|token|private)(?!\w*(?:name|id|arn))|\b(?:pwgen|pwqgen)\b|\bmkpasswd\b|\bopenssl rand\b|\bgen(?:key|psk)\b|\bsecrets\.(?:token_|choice)|secret_key\(|randomBytes|SecureRandom|/dev/u?random|\bwhoami -t\b|\blpass show [^|;]*-(?:p\b|-password)|gen\.secret|(?:^|[\s|;&(])(?:go)?pass (?:show \S|(?:-\S{1,20} )?[\w.@-]{1,40}/)"
_ONE_VALUE = r"\bop read|\b(?:go)?pass (?:show )?[\w-]+/|/run/secrets/|\b(?:cat|tail|head|less|bat|more)\b[^|&]*(?:pass|secret|pw)\w*(?:\.txt)?(?:;.*)?$|\bprintenv \w*(?:PASS|PW|SECRET)|\bget password\b|\b(?:rbw|keyring) get|-field=|\bfind-\w+-password .*-w|\becho \"?\$\{?\w*(?:PASS|PW|SECRET)|secrets versions access|keyvault secret show|output -raw|--query (?:SecretString|Parameter\.Value)|jsonpath=.*base64"
_DUMPS = r"\b(?:sops (?:-d|decrypt)|ansible-vault (?:view|decrypt)|vault kv get|chamber (?:read|export)|(?:go)?pass show|lpass show)\b|with-decryption"
_PRINTS_CODE = r"-field=(?:pin|puk|code)\b|\boathtool\b|\b(?:get|show|item|accounts)\b[^|;]*(?:\b(?:totp|otp)\b|\baccounts code\b)"
_SHELL = r"kind|[$❯➜>]|PS |\w+@|(?! )[\w.@~:/\\()\[\] -]{1,60}(?:[$%❯➜]|(?<![ -])>) |(?:\S{1,30}[:~ ])?\S{1,30}# |(?:root|#) ?(?=(?:cat|vault|kubectl|op|pass|aws|az|gcloud|sops) )"
_CONSOLE = r">>> |\(gdb\) |\(Pdb\)|In \[|\d\) |(?:irb|pry)\(|> |[\w.:\[\]()-]{1,40}(?:[=-]#|>) "
_CHAT = r"(?:> )?(?:\w+, )?(?:\[[^\]\n]{2,30}\d\][ ]|\d[\d./:, -]{6,20} - |\d{1,2}:\d\d(?::\d\d)?[ ])?(?:[\w.-]{2,20}(?: [\w.]{1,20})?(?: \([\w:., ]{2,20}\))?:|[QA]:|<[\w. -]{2,20}>|\[[\w.-]{2,20}\]) (?=\S)"
_ASKS = r"\?\s*\Z|[\]>] |(?i:\b(?:what(?:'?s)?|which|was|wie|quel|qual|cu[aá]l|got|have|need|send|schick|brauch)\b)"
_ASKS_ABOUT = r"(?i)polic|hash|expir|stor(?:e|age)|service|page|field|manager|length|rule|rotat|renam|\b(?:which|where|why|how|should)\b"
_INTRODUCES = r"(?i)(?:\bbelow|\bnext line|\bunten|\bnächste[nr]? zeile|ci-dessous|abajo|下の行|下記|以下|下面)[^\n]{0,40}\Z|\A\s*\"[^\"]{0,60}\b(?:initial|temporary|new|generated)\b[^\"]{0,60}\",\Z|\A1\) |(?:\b(?:is|was|ist|war|lautet|es|est)|[:：])\s*\Z|\A[ \t#*>]{0,8}(?:[\w-]{1,15} ){0,2}(?:password|passphrase|passwort|kennwort|contraseña|mot de passe|senha|пароль|密码|パスワード)[ \t*]{0,4}\Z"
_CODE_SIGNS = frozenset("(){};=<>$\\|\t")
_PUBLIC_LABEL = r"(?i)(?:host|server|user|name|space|login|e?-?mail|url|uri|address|port|(?<!secret)(?<!secret_)[_ ]?id|[ug]id|arn|version|date|time|stamp|at|created\w*|updated\w*|type|region|engine|lease\w*|path|file|kind|role|database|bucket|fingerprint|sha\d*|md5|hash|digest|etag|commit|revision|serial|expir\w*|public|public[_ ]?key|status|source|hash|checksum|accessor|image|tag)s?[\]\"'`\s]*[:=|│→]?[\s\"'`]*\Z"
_BARE = r"(?:" + _CHAT + r")?[ \t]*(?:=>?[ ]|>[ ]|---[ ]|\$\d+ =(?:=>)? (?:0x[0-9a-f]{1,16} )?|Out\[\d{1,4}\]:[ ]|2\)[ ])?(?:b(?='))?[\"'`]?([^\s\"'`]{6,4000}?)[\"'`]?[ \t]*(?:\n|\Z)"
_BLANK = r"(?:[ \t>]*(?:`{3}\w*|[-=*]{3,})?[ \t]*\n|[ #›!]{0,8}(?i:warning|note|info|hint)\b[^\n]{0,200}\n|[\w.@-]{2,7}\n|\? [^\n]{0,60}\[hidden\][ ]*\n){0,3}"
_NOT_PRINTED = r"0[xo]\w{1,16}\Z|[\w.]+[(\[]|(?![A-Za-z0-9+/_-]{20,}=+\Z)[\w.:@~,-]*[/=]|\d+→|[^@]+@[\w.-]+\.\w+\Z|[\w.*-]+:(?:\d{2,5}|\*):"


def prints_secret(command: str) -> bool:
    """Return whether the words of a shell command or an expression show that it can print a secret."""
    command = command[:MAX_LINE]
    if command.isascii() and not any(map(command.lower().__contains__, _OF_SECRETS)):
        return False
    if _compiled(_MAKES).search(command) or _compiled(_PRINTS_CODE).search(command):
        return True
    return _compiled(_THING).search(command) is not None and not _compiled(_LISTS).search(command)


def _values_below(text: str, names: list[Match[str]], lines: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield what stands below a line that announces secrets: a command that prints them, a question, a prompt, a heading."""
    done = listed = 0
    starts = [name.start() for name in names]
    heads = [name.start() for name in names if name.lastgroup not in ("weak", "code", "hint")]
    for start, end in lines:
        if start < done or end == len(text):
            continue
        line = text[start:end]
        prompt = _compiled(_PROMPT).match(line) if _compiled(r"[$#%❯➜>:) ](?:(?<=[^ ]) |(?<=\A )[ ]{1,7}[kgavo])").search(line, 0, 80) else None
        command = line[prompt.end() :] if prompt else ""
        printed = prints_secret(command) if command else line.startswith("kind: Secret")
        if not printed and (bisect(heads, start - 1) == bisect(heads, end) or line.strip() == "pass"):
            continue
        groups = {name.lastgroup for name in names[bisect(starts, start - 1) : bisect(starts, end)]}
        is_shell = printed and _compiled(_SHELL).match(line) is not None
        if printed or not _QUIET_ONLY.issuperset(groups):
            done = yield from _values_alone(text, line, command, end, groups, printed=printed, is_shell=is_shell)
        if start >= listed and (is_shell or (not printed and not groups.isdisjoint(("strong", "talk", "place")) and _is_heading(line))):
            listed = yield from _rows_below(text, end + 1, command, printed=is_shell)


def _is_question(line: str) -> bool:
    """Return whether a line of a chat asks for something."""
    return (":" in line[:50] or line[0] in "<[>") and _compiled(_CHAT).match(line) is not None and _compiled(_ASKS).search(line) is not None and not _compiled(_ASKS_ABOUT).search(line)


def _is_heading(line: str) -> bool:
    """Return whether a line is a title, or announces a list."""
    title = line.strip(" \t\r#*>_[]-")
    title = title.rpartition(" (")[0] or title if title.endswith(")") else title
    is_list = title.endswith((":", "：", "accounts", "logins", "one per line", "eine pro zeile"))
    is_short = title.count(" ") <= 5 and title[-1:] not in tuple(".,;!?") and ": " not in title and "," not in title
    return (is_list or is_short) and len(title) <= 200 and "  " not in title and _CODE_SIGNS.isdisjoint(title)


def _values_alone(text: str, line: str, command: str, end: int, groups: set[str | None], *, printed: bool, is_shell: bool) -> Generator[tuple[int, int], None, int]:
    """Yield the values that stand alone below a line, and return where the last one ends."""
    below = _compiled(_BLANK + _BARE).match(text, end + 1) if printed or "strong" in groups or "key" in groups else None
    if below is None or (_compiled(_CHAT).match(text, text.rfind("\n", end, below.start(1)) + 1) and not _compiled(_CHAT).match(line)):
        return 0
    is_question = _is_question(line)
    is_asked = _compiled(_CONSOLE).match(line) is not None
    is_introduced = is_question or ("strong" in groups and _compiled(_INTRODUCES).search(line[-80:]) is not None)
    if not printed and not (is_asked or is_introduced or _compiled(_CHAT).match(line)):
        return 0
    is_sure = is_asked or any(_compiled(words).search(command) for words in (_PRINTS, _MAKES))
    is_one = is_shell and _compiled(_ONE_VALUE).search(command) is not None
    while below:
        value, done = below[1], below.end()
        if _compiled(r"(?i)[ \t>]*\w*(?:hash|[_ ]id|digest|commit|sum|address):").match(text, below.start()):
            break
        chosen = _chosen(value, is_literal=is_shell or is_asked or is_question or line.startswith("1)"))
        is_printed = is_sure and ((_looks_secret(value, True) and not _compiled(_NOT_PRINTED).match(value)) or (bool(command) and chosen > 1))
        if _compiled(_PRINTS_CODE).search(command) if value.isdigit() else (
            _shape(value) >= (1 if is_sure else 2 if line.endswith("?") else 3)
            or (is_printed and (not _is_name(value) or chosen > 1))
            or (is_one and chosen)
            or (is_introduced and chosen > 1 and not _compiled(_NOT_PRINTED).match(value))
        ):
            yield below.span(1)
        is_one = False
        below = _compiled(_BARE).match(text, done) if printed else None
    return done


def _rows_below(text: str, start: int, command: str, *, printed: bool) -> Generator[tuple[int, int], None, int]:
    """Yield the last cell of the rows below a line that announces them, if it can be a secret, and return where they end."""
    is_dump = _compiled(_DUMPS).search(command) is not None
    for number in range(60):
        end = text.find("\n", start, start + MAX_LINE)
        end = end if end >= 0 else min(len(text), start + MAX_LINE)
        row = text[start:end]
        is_empty = not row.strip(" \t-=_*`─│┌┐├┤└┘┬┴┼+|\r")
        cell = None if is_empty else _last_cell(row, printed=printed, is_dump=is_dump)
        if _compiled(_PROMPT).match(row) if printed else (number > 1 and not row.strip()) or (cell is None and not is_empty):
            break
        if cell and cell[1]:
            yield start + cell[0], start + cell[1]
        if end >= len(text):
            break
        start = end + 1
    return start


_BEHIND_LABEL = ("  ", "\t", "| ", "│ ", ": ", ":", "=", "= ", " / ", " - ", " – ", " + ", " → ")


def _last_cell(row: str, *, printed: bool, is_dump: bool) -> tuple[int, int] | None:
    """Return the place of a secret at the end of a row, such as `user:value`, `name  value`, `"name": "value",`, `│ name │ value │`.

    It is empty if the last cell is no secret, and None if the text is no row.
    """
    end = len(row.rstrip(" \t\r│|,;\"'`*"))
    words = row.split() if printed else []
    if len(words) > 1 and all(is_random(word) and _shape(word) > 1 for word in words):
        return row.index(words[0]), end
    if is_dump and (sentence := _compiled(r"[\w.-]+:[ ]+([^\W\d_]+(?:[ ][^\W_]+){2,12})\s*\Z").match(row)):
        return sentence.span(1)
    at = max(row.rfind(sign, 0, end) for sign in " \t│|\"'`") + 1
    label = row[:at].rstrip("\"'`*")
    pair = _compiled(r"[A-Za-z_][\w.@+-]{1,40}:(?!//)(?=\S)").match(row, at, end) if not label.strip(" \t>*•-") else None
    at = pair.end() if pair else at
    value = row[at:end]
    label = label.removesuffix("> ").rstrip("-=") + "  " if label.endswith((" -> ", " => ")) else label
    is_cell = pair or label.endswith(_BEHIND_LABEL)
    if not is_cell or (not printed and (_compiled(r"[(){};=<>$\\]|[.!?][ ]+\Z").search(label) or _compiled(_NO_CELL).match(value))):
        return None
    is_plain = not printed and _shape(value) < 4 and set(value).isdisjoint(_SYMBOLS)
    is_labeled = _compiled(_PUBLIC_LABEL).search(label) or (is_plain and label.endswith((": ", "| ")))
    is_other = len(value) > JUDGED_CHARACTERS or _compiled(_NOT_PRINTED).match(value)
    is_public = is_other or (is_labeled and not pair)
    is_strong = not printed or _kinds(value) == 3 or not set(value).isdisjoint(_SYMBOLS + "$@")
    is_chosen = (is_dump and _chosen(value, is_literal=True) > 1) or (is_strong and _chosen(value) > 2)
    is_secret = _shape(value) > 1 or is_chosen
    return (at, end) if is_secret and not is_public else (0, 0)


@cache
def literals_of_values() -> tuple[str, ...]:
    """Return the literals, in lower case, one of which is in every text with a named value."""
    return (*_stems(), *_options(), "cookie", " -b")


@cache
def _stems() -> frozenset[str]:
    return frozenset(["_pat", *(stem.replace("_", " ") for stem in (*_STEMS, *_FOREIGN))])


@cache
def _options() -> dict[str, list[str]]:
    patterns: dict[str, list[str]] = {}
    for literal, pattern in _OPTIONS:
        patterns.setdefault(literal, []).append(pattern)
    return patterns


def _lines(text: str, positions: list[int]) -> list[tuple[int, int]]:
    lines: list[tuple[int, int]] = []
    done = 0
    for position in positions:
        if position < done:
            continue
        lowest = max(position - MAX_LINE, done)
        end = text.find("\n", position, position + MAX_LINE)
        done = end if end >= 0 else min(len(text), position + MAX_LINE)
        lines.append((text.rfind("\n", lowest, position) + 1 or lowest, done))
    return lines


def _option_values(text: str, places: Places) -> Iterator[tuple[int, int]]:
    options = _options()
    for places_of, pattern in ((places[word], pattern) for word in places for pattern in options.get(word, ())):
        stop = 0
        for at in places_of:
            if at < stop:
                continue
            start = max(stop, text.rfind("\n", max(0, at - MAX_LINE), at), at - MAX_LINE, 0)
            end = at + 600 if "\\s{" in pattern else text.find("\n", at, at + MAX_LINE)
            stop = min(len(text), end if end >= 0 else at + MAX_LINE)
            may_match = pattern is not _TOTP or _compiled(_MAY_BE_BASE32).search(text, start, stop + 1)
            for match in _compiled(pattern).finditer(text, start, min(len(text), stop + 1)) if may_match else ():
                value = match.group(2)
                if not _is_option_secret(value):
                    continue
                kind = match.lastgroup  # how much a value must look like a chosen one
                lowest = ("word", "literal", "judged").index(kind) if kind else -1
                lowest -= _compiled(_LOGS_IN).search(match[1]) is not None
                is_telling = kind is None or _shape(value) or " " in value
                if is_telling or _chosen(value, is_literal=kind != "judged") > lowest:
                    yield match.end(1), match.end()
                    stop = max(stop, match.end())


def _named_values(text: str, lowered: str, names: list[Match[str]]) -> Iterator[tuple[int, int]]:
    sign = _compiled(r"[:=,\"'`(>|→：＝]")
    next_sign = -1
    done = 0
    for name in names:
        position = name.start()
        if position < done or name.lastgroup not in ("strong", "key", None):
            continue
        if next_sign < position:
            following = sign.search(lowered, position)
            next_sign = following.start() if following else len(lowered)
        if next_sign > position + REACH:
            continue
        before = lowered[max(0, position - 30) : position]
        if name.lastgroup == "key" and (not _compiled(_OPENS).search(before) or _compiled(_IS_UNIQUE).search(before)):
            continue
        value = _value(text, name) or (_setting(text, name) if name[0] != "token" and name.lastgroup != "key" and next_sign < name.end() + 24 else None)
        if value is not None:
            yield value
            done = value[1]


def _chosen(value: str, *, is_literal: bool = False) -> int:
    """Return how much `value` looks like a password that somebody made up, next to a name for passwords.

    1: a word, 2: two joined words, 3: more words, or capitals, digits, and signs inside. 0: a word of prose or code.
    Where no code can stand, `is_literal`, an identifier is joined words.
    """
    if not is_literal and _compiled(r"(?=.*\d)(?=.*[A-Z])\w{3,20}\.\w{3,20}(?:\.\w{3,20})?").fullmatch(value):
        is_literal = _TECHNICAL.isdisjoint(_parts(value))
    is_constant = _compiled(r"[A-Z]+(?:_[A-Z]+)+").fullmatch(value) is not None
    if is_literal and not is_constant and not _compiled(_FILE).search(value):
        value = _compiled(r"(?<=\w)[_.,](?=\w)|(?<=[^\W\d_])[;:=](?=\w)").sub("-", value)
    if _compiled(_CHOSEN).fullmatch(value) is None or _compiled(_NOT_SECRET).match(value) or _compiled(_ALGORITHM).match(value):
        return 0
    lowered = value.lower()
    parts = [part for part in _compiled(r"[\W\d_]+").split(lowered) if part]
    words = [part for part in parts if len(part) > 2 and part not in _NO_CHOICE and not _is_a_name(part)]
    if (len(words) < 3 or "." in value) and (lowered in _NO_CHOICE or any(part in _NO_CHOICE or _is_a_name(part) for part in parts)):
        return 0
    if not parts or (value.islower() and len(parts) < 4 and not _JOINS.isdisjoint((parts[0], parts[-1]))) or "to" in parts[1:-1] or _compiled(_FILE).search(value):
        return 0
    if value.isalpha():
        return int(value[1:].islower())
    if _compiled(r"[a-z_]+(?:\.[a-z_]+)+").fullmatch(value):
        return 0
    if _compiled(r"(?!(?=.*\d.*\d)[A-Z\d]{8,}\Z)[A-Z_\d]+|[0-9a-f]{6,40}|(?:\d+[a-z]{1,2})+|[a-z]+(?:_[a-z\d]+)+|[a-z]+\d{0,3}|v?\d[\d.-]*\w?|[A-Z][\w]*(?:\.[A-Z]\w*)+|[a-z]\w*(?:\.[a-zA-Z]\w*)").fullmatch(value):
        return 1 + value[-1].isdigit() if value.isalnum() and value.islower() else 0
    if any(sign in value for sign in "!#$%&*+?~^@;") or any(map(str.isdigit, value)):
        return 3
    if len(parts) > 2 or "." not in value:
        return 3 - (len(parts) == 2 and value.islower())
    return 2 * (len(parts[-1]) > 4 and value[0].isupper() and parts[-1] in value)


def _is_a_name(part: str) -> bool:
    """Return whether a part of a value is, or begins or ends with, a word for secrets."""
    names = (name for name in _compiled(_NAME).finditer(part) if name.lastgroup not in ("weak", "code", "phrase", "hint"))
    return part in ("key", "keys") or any(name[0] not in ("pass", "pin", "pw", "key") or name[0] == part for name in names) or _compiled(rf"(?:{_foreign_names()})\w{{0,2}}").fullmatch(part) is not None


def _is_option_secret(value: str) -> bool:
    if value.isdigit() or _compiled(_MARK).search(value) or entropy(value) < MIN_ENTROPY:
        return False
    if _compiled(r"[\w-]+\.[a-z]{2,4}\Z").match(value):
        return False
    references = ("[redacted", "${", "$(", "{{", "<", "%(", "your", "YOUR", "changeit", "env:", "file:", "@/")
    return not value.startswith(references)


def _value(text: str, name: Match[str]) -> tuple[int, int] | None:
    """Return the span of the secret that belongs to this name, if there is one."""
    behind = _compiled(_BEHIND).match(text, name.end())
    if behind is None:
        return None
    quote, start = behind.group("quote"), behind.end()
    if quote[:1] == "\\":
        inside = quote if quote in _INSIDE else "escaped"
    elif not quote and behind.group("given") == "=" and text[name.start() : name.end()].isupper():
        inside = "line"
    else:
        inside = quote[-1:]
    found = _compiled(_INSIDE[inside] + f"{{{MIN_LENGTH},{JUDGED_CHARACTERS}}}").match(text, start)
    if found is None:
        return None
    before = text[max(0, name.start() - 80) : name.start()]
    if _compiled(r"\barn:[\w:/-]{0,70}\Z").search(before):
        return None
    value, end = found.group(), found.end()
    is_cut = len(value) == JUDGED_CHARACTERS
    is_closed = bool(quote) and (is_cut or text.startswith(quote, end))
    if _is_no_value(text[name.start() : name.end()], behind.group("suffix"), value, is_closed):
        return None
    if behind.group("passed") is not None:
        is_secret = not _compiled(_LIST_ITEM).fullmatch(value) or is_random(value)
    else:
        sign = behind.group("given") or ":"
        is_password = re.match(r"passw|pwd|pw\b", name.group()) and re.search(r"\d", value)
        is_open_name = _is_name(value) and not is_random(value) and not is_password
        is_secret = is_closed or not (_is_code(value, text[end : end + 1], sign) or is_open_name)
        is_secret = is_secret and (sign[-1] != "[" or is_random(value))
    if quote and text[end : end + 1] == " " and not _shape(value):
        return None  # the first word of a label
    if is_secret and is_cut:
        end = _compiled(_INSIDE[inside] + "*").match(text, end).end()  # type: ignore[union-attr]
    return (start, end) if is_secret else None


def _setting(text: str, name: Match[str]) -> tuple[int, int] | None:
    """Return the span of a password in a setting: there it can be a word, and in quotes a few words."""
    behind = _compiled(_BEHIND).match(text, name.end())
    if behind is None or behind["pair"] is not None:
        return None
    key, quote, start = text[name.start() : behind.end("suffix")], behind["quote"], behind.end()
    sign = (behind["given"] or behind["passed"]).strip()
    line = text.rfind("\n", max(0, name.start() - REACH), name.start()) + 1 or max(0, name.start() - REACH)
    is_option = _compiled(r".*\s--?[\w-]*\Z").match(text, line, name.start()) is not None
    is_variable = (key.isupper() or is_option) and sign in ("=", "=>")
    is_password = _compiled(_PASSWORD_KEY).fullmatch(key) is not None
    if not is_password and not (is_variable and key.endswith(("SECRET", "SECRET_KEY"))) and not (quote and key == "secret" and behind["given"]):
        return None
    if quote or (behind["passed"] and sign.endswith(">")):
        end = text.find(quote or "<", start, start + 64)
        value = text[start : max(start, end)]
        if behind["given"] and _compiled(_APP_PASSWORD).fullmatch(value) and not _FUNCTION_WORDS.intersection(value.split()) and len(_words(value)) < 3:
            return start, end
        is_setting = behind["given"] is not None or not quote or sign.endswith("value=") or (((key.isupper() and sign[-1:] == ",") or (sign == "(" and _chosen(value) > 2)) and not value.islower()) or text[max(0, line, name.start() - 30) : name.start()].lstrip().startswith("define(")
        has_digit = any(map(str.isdigit, value))
        if " " in value and (has_digit or key.isupper() or key.lower() in ("psk", "passphrase") or text[name.start() - 1] == "_"):
            words = _compiled(r"[^\W\d_]+").findall(value.lower())
            is_label = not _compiled(r"[\w'’,-]+(?: [\w'’,&-]+)+[!?.]?").fullmatch(value) or not (value[0].islower() or key.isupper() or key.lower() in ("psk", "passphrase")) or not (_NO_CHOICE | (_JOINS if has_digit else set())).isdisjoint(words) or _compiled(_NAME).search(value) or "\n" in value
            return (start, end) if is_setting and len(words) > 1 and not is_label else None
    else:
        found = _compiled(r"[^\s\"'`,;<>(){}\[\]&]{5,64}").match(text, start)
        value, end = (found[0], found.end()) if found else ("", start)
        is_alone = _compiled(r"[ \t]*(?:\n|\Z)").match(text, end) is not None and _compiled(r"(?:/[\w./-]+:(?:\d+:)?|[ \t-]*(?:set |export )?)[\w.\[-]*\Z").match(text, line, name.start())
        is_data = text[max(0, line - 99) : line].rstrip()[-1:] not in tuple("{(,;") and key != "PASS"
        is_word = sign == "=" and text[start - 1] == " " and not value[:1].isupper()
        is_variable = is_variable or (sign == "=" and text[start - 1] == "=" and _chosen(value) > 1)
        is_setting = (is_variable and text[end : end + 1] not in ("(", "[", ".")) or bool(is_alone and is_data and not is_word)
    lowest = 3 if (key == "pass" and line == name.start() and not quote) or (not is_password and not is_variable) else 1
    is_literal = (behind["given"] or "").strip() in ("=", "=>") and (sign != "=" or behind["given"] == "=") and (is_variable or _compiled(r"[\w.]*\Z").match(text, line, name.start()) is not None)
    is_literal = is_literal or (bool(quote) and _TECHNICAL.isdisjoint(_parts(value)))
    return (start, end) if is_setting and _chosen(value, is_literal=is_literal) >= lowest else None


def _is_no_value(name: str, suffix: str, value: str, is_quoted: bool) -> bool:
    is_count = name.lower() == "token" and suffix.lower().startswith(("s", "_c"))
    is_id = name.lower() == "secret" and _compiled("(?i)[ _-]?id").fullmatch(suffix)
    if is_id and (_compiled(_UUID).fullmatch(value) or is_random(value)):
        return False
    if _compiled(_NOT_VALUE).search(suffix) or (is_count and value.isdigit()):
        return True
    return not _looks_secret(value, is_quoted)


@cache
def _compiled(pattern: str) -> Pattern[str]:
    return re.compile(pattern)


def _looks_secret(value: str, is_quoted: bool = False) -> bool:
    """Return whether a named value can be a secret: no placeholder, path, version, word, or name."""
    value = _compiled(_MARK).sub("", value)
    if len(value) < MIN_LENGTH or entropy(value) < MIN_ENTROPY:
        return False
    if _compiled(_NOT_SECRET).match(value) and not (value[0] in "./-" and is_random(value)):
        if not is_quoted or value[0] not in "$%{<(@&-" or not _is_said(value[1:]):
            return False
        if _compiled(_PLACEHOLDER).match(value):
            return False
        return is_random(value) or not _compiled(_REFERENCE).match(value)
    is_dotted_name = all(letter.isalpha() or letter in "._-/$" for letter in value)
    return not is_dotted_name or is_random(value)


def _is_said(value: str) -> bool:
    if _compiled(r"(?:[0-9a-f-]{1,31}|[0-9a-f]{40}|[0-9a-f]{64}|(?:[0-9a-fA-F]{2}:){3,}[0-9a-fA-F]{2})").fullmatch(value):
        return False
    kinds = _kinds(value)
    if _compiled(_WORD_AND_NUMBER + r"{1,3}\w{0,3}").fullmatch(value):
        return True
    if kinds == 3 and (_compiled(r"[!#%&^*+?~]").search(value.rstrip("!?*")) or is_random(value)):
        return True
    return len(value) >= 12 and kinds >= 2 and is_random(value)


def _kinds(value: str) -> int:
    return sum(_compiled(kind).search(value) is not None for kind in ("[a-z]", "[A-Z]", "[0-9]"))


def _is_code(value: str, following: str, sign: str) -> bool:
    """Return whether an unquoted value is an expression in code."""
    if following == "(" or re.match(r"[A-Za-z_$][\w.]*[(\[]|[A-Za-z_$][\w$.]{0,30}\?[\w$.]{1,30}:", value):
        return True
    name = _compiled(_IDENTIFIER).match(value)
    if name is None or 2 * sum(map(len, _words(value))) < len(value):
        return False
    is_expression = following in tuple("[;,)}") or "." in name.group() or sign.strip() == "=" != sign
    return (is_expression or "_" in value) if name.end() == len(value) else value[name.end()] in "[{|"


def _cookie_values(text: str, places: Places) -> Iterator[tuple[int, int]]:
    stop = 0
    for at in sorted([*places.get("cookie", ()), *places.get(" -b", ())]):
        if at < stop:  # already searched with the previous one
            continue
        if text.startswith('cookies": [', at):
            end = text.find("]", at + 12, at + 8000)
            yield from (value.span(1) for value in _compiled(r'"value": ?"([^"\s]{16,4000})"').finditer(text, at, end if end > 0 else at + 8000) if is_random(value[1][:JUDGED_CHARACTERS]) or value[1][0:3] == "eyJ")
        head = _compiled(_COOKIE).match(text, at)
        if head is None:
            continue
        line_end = text.find("\n", head.end())
        stop = min(len(text) if line_end < 0 else line_end, head.end() + 8000)
        for pair in _compiled(_COOKIE_VALUE).finditer(text, head.end(), stop):
            value = pair.group(2)
            if is_random(value[:JUDGED_CHARACTERS]) and not _compiled(_MARK).search(value):
                yield pair.span(2)


REPEATED, MIN_REPEATED = 20, 12
"""How many values are searched for again in their text, and characters of the shortest."""

MAX_LINE = 2000
"""Characters of a line that are searched around a word."""

MAX_ROWS = 1000
"""Rows that are searched below a table's heading."""

_HEADING = r"(?i)[ \t*`\"']{0,30}(?:[\w-]{1,20}[ _-]){0,3}(?:passwords?|passwd|passphrase|pass|pwd|pw|psk|pin|puk|secret|token|api[ _-]?key|secret[ _-]?(?:access[ _-]?)?key|access[ _-]?token|credentials?|passwort|kennwort|contraseña|mot de passe|senha|пароль|密码|パスワード)[ \t*`\"']{0,30}"


_USER_HEADING = r"(?i)\b(?:user|username|login|benutzer|usuario|utilisateur|zugang|account)\b"
_INSERT = r"(?i)insert into [\w.\"`]+ ?\([^()]{1,400}\) values *"


def _table_cells(text: str, headings: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the values in the secret columns of each table or CSV text."""
    done = 0
    no_code = _compiled(r"[^\n=(]*\n|(?i:copy |insert into )")
    # Its first character is one of a set, for which the search skips ahead.
    has_cells = _compiled(r"[ |│\t;,:cCiI](?:(?<=\S[|│\t;,])|(?<=\w:)(?=\w)|(?<=\S )[ |│\t;,]|(?<=[cC])(?i:opy)|(?<=[iI])(?i:nsert ))")
    for start, end in headings:
        inserted = text[start] in "iI" and _compiled(_INSERT).match(text, start, end)
        end = inserted.end() - (inserted.end() < end) if inserted else end
        if start < done or end == len(text) or (text[end] != "\n" and not inserted) or not no_code.match(text, start) or not has_cells.search(text, start, end):
            continue
        columns, delimiter, heads = _secret_columns(text[start:end])
        if not columns:
            continue
        cells_of: dict[int, list[tuple[int, int, str]]] = {}
        for _ in range(MAX_ROWS):
            start = end + 1
            end = text.find("\n", start, start + MAX_LINE)
            end = end if end >= 0 else min(len(text), start + MAX_LINE)
            row = text[start:end].replace("│", "|")
            row = row.translate({40: " ", 41: " "}).rstrip(" ,;") if inserted else row
            cells = _cells(row, delimiter)
            if not delimiter and len(cells) == len(heads):
                cells = [((head, at[1]), cell) for head, (at, cell) in zip(heads, cells, strict=True)]
            if len(cells) == len(heads) or (not delimiter and len(cells) > 1):
                for position, cell in cells:
                    value = cell.strip(" \t\r*`\"'")
                    if position[0] in columns and (" " not in value or f"`{value}`" in cell):
                        begin = start + position[1] + cell.index(value)
                        cells_of.setdefault(position[0], []).append((begin, begin + len(value), value))
            elif not row or row.strip("-+| \t─┼├┤"):
                break
            if end >= len(text):
                break
        done = max(done, start)
        for column, values in cells_of.items():
            # Where one cell is a secret, the others are too.
            kind = columns.get(column)
            is_sure = any(_is_sure_cell(value, is_password=bool(kind)) for _, _, value in values)
            for begin, stop, value in values:
                is_chosen = is_sure and (_chosen(value, is_literal=True) or " " in value or (value.isdigit() and len(value) > 5))
                if _shape(value) > 1 or is_chosen or (kind is None and value.isdigit() and len(value) > 3):
                    yield begin, stop


def _is_sure_cell(value: str, *, is_password: bool) -> bool:
    is_literal = not value.islower() and _chosen(value, is_literal=True) > 1
    return _shape(value) > 1 or (is_password and (is_literal or _chosen(value) > 2))


def _secret_columns(line: str) -> tuple[dict[int, bool | None], str, list[int]]:
    """Return the columns of a heading that hold secrets, what parts them ("" for alignment), and where all are.

    The value of a column is whether it is called just that, None if it holds digits.
    """
    copied = _compiled(r"(?i)(?:copy|insert into) [\w.\"`]+ ?\(([^()]{1,400})\) (?:from stdin;|values *)").fullmatch(line) if "(" in line else None
    selected = _compiled(r"(?i)[\w=#> -]*\bselect ([\w, ]{3,200}) from [^\n]*").fullmatch(line) if "elect" in line or "ELECT" in line else None
    if copied or selected:
        line = copied[1].replace(", ", "\t" if line.endswith(";") else ",") if copied else re.sub(", ?", "|", selected[1])  # type: ignore[index]
    if "=" in line or "(" in line or len(line) > MAX_LINE:
        return {}, "", []
    line = _compiled(r"\A#(?=[ ]\S+[ ]{2})").sub(" ", line.replace("│", "|")).lstrip("#")
    delimiter = next((one for one in "|\t;," if one in line), ":" if _compiled(r"#?[ ]?[\w-]{2,20}(?::[\w-]{2,20}){1,4}").fullmatch(line) else "")
    pieces = line.split(delimiter) if delimiter else []
    is_prose = max(map(len, pieces)) >= 60 if pieces else not _compiled(r"\S\s(?:\s|(?<! ))").search(line)
    if is_prose or (delimiter not in ("", "|") and not any(map(_compiled(_HEADING).fullmatch, pieces))) or _compiled(r"\d\.\d").search(line):
        return {}, "", []
    cells = _cells(line, delimiter)
    if len(cells) < 2 or (delimiter == "," and not all(cell.strip() for _, cell in cells)) or (not delimiter and max(len(cell) for _, cell in cells) >= 60):
        return {}, "", []
    columns = {}
    for number, (at, cell) in enumerate(cells):
        name = cell.strip(" \t*`\"'")
        if _compiled(_HEADING).fullmatch(cell) or (not name and delimiter == "|" and _compiled(_USER_HEADING).search(cells[number - 1][1])):
            columns[at[0]] = None if name in ("PIN", "PUK") else not name or _compiled(_PASSWORD_KEY).fullmatch(name) is not None
    return columns, delimiter, [at[0] for at, _ in cells]


def _cells(line: str, delimiter: str) -> list[tuple[tuple[int, int], str]]:
    """Return the cells of a line, each with its column (its offset if cells are aligned) and its offset."""
    if not delimiter:
        return [((cell.start(), cell.start()), cell[0]) for cell in _compiled(r"\S+(?: \S+)*").finditer(line)]
    pattern = r"[^\t]+" if delimiter == "\t" and "\t\t" in line else rf"(?:(?<=\{delimiter})|^)[^{delimiter}]*"
    cells = _compiled(pattern).finditer(line)
    return [((number, cell.start()), cell[0]) for number, cell in enumerate(cells)]


# A word with a digit, as long as a password, after a space, quote, or sign; the digits of a PIN; an app password.
# Spaces one by one: a set with `\s` is slow.
_END = r" \t-\r\x1c-\x1f\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\"'`<>|,;=，。；：、”」』«»\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af"
_CANDIDATE = (
    rf"(?<![^{_END}“「『:：→(\[])(?=[^{_END}]{{6}})(?:[^{_END}\d]{{0,60}}\d[^{_END}&]{{0,300}}(?:&(?![\w-]{{1,30}}=)[^{_END}&]{{0,300}})*|[a-z]{{4}}(?:-[a-z]{{4}}){{3}}|[a-z]{{12,40}}|(?:[a-z]\.)?[A-Za-z]{{0,20}}[a-z][A-Z]{{2,9}}[a-z][A-Za-z]{{0,20}}|[A-Z]{{3,9}}[a-z][A-Za-z]{{0,20}}[A-Z][A-Za-z]{{0,20}})(?![^{_END}&]|&(?![\w-]{{1,30}}=)|=[\w\"'])={{0,2}}"
    r"|(?<![\w.,:/#+-])(?:\d{3} \d{3}|\d{4,24})(?![\w.,:/%+-]*\w|→)"
)
# A word with a sign, a digit, or a capital inside; what ends its line and holds letters, digits, and signs.
_MAY_BE_CHOSEN = (
    rf"(?<![^{_END}“「『:：→(\[])(?:(?<=: )(?=\S{{0,30}}[<>;,:])(?=\S{{0,30}}\d)(?=\S{{0,30}}[A-Z])(?=\S{{0,30}}[a-z])[^\s\"'/]{{8,40}}(?=\n|\Z)"
    rf"|(?=[^{_END}]{{0,30}}(?:[^\W\d]\d|\d[^\W\d]|[^\W_][-_.!#$%&*+~^?@;][^\W_]))[^\W_][^{_END}]{{4,40}}(?![^{_END}]))"
)
_TELL_OF_CHOICE = r"[-_.!#$%&*+~^?@;:<>\d](?:(?<=[^\W_].)(?=[^\W_])|(?<=[^\W\d]\d)|(?<=\d)(?=[^\W\d])|(?<=: .)|(?=\S{7,}\n))"
_NO_PASS = r"(?:--- |✅ |✓ |(?i:\b(?:by|com|sur|tres|over|under)))\Z"
_PASSES = r"pass[.,;!|)*}\n]|[soyl] pass |(?:first|second|third|next|last|single|one|each|final|\w-?up|\d) pass\b|pass (?:rate|through|over|count)"
# A word that can hold a candidate has a digit, many letters, or capitals.
_TELLS = (b"0", b"a" * 12, b"aAA", b"AAA", b"aaaa-aaaa-")
_CLASSES = bytes.maketrans(
    bytes(range(48, 58)) + bytes(range(65, 91)) + bytes(range(97, 123)) + b"\t\n\v\f\r\x1c\x1d\x1e\x1f\"'`<>|,;=",
    b"0" * 10 + b"A" * 26 + b"a" * 26 + b" " * 18,
)
REACH = 100
"""Characters between a value and a word that names it."""

THRESHOLD = 7
"""Points that make a value a secret: those of its name, of what stands around it, and of its shape."""

_QUIET_ONLY = frozenset(("weak", "place", "code", "talk", "hint"))
"""Kinds of names that head no table, and no value that stands alone."""

# Points of the words that name a secret. They are added to those of the evidence and of the shape.
_NAME_POINTS = {"strong": 3, "key": 2, "weak": 1, "talk": 2, "pin": 4, "code": 2, "place": 1, "phrase": 0, "hint": -9}
_CODES = r"(?:door|access|entry|gate|alarm|security|verification|confirmation|sms|2fa|mfa|otp|two[- ]factor|reset|sign[- ]?in|authenticat\w{2,4}|one[- ]?time|unlock|pairing|login|pass|puk|pin|safe|lock|master|app|panel)[ -]\Z"

_OF_CODES = r"[ ](?:d['’]|de |di |de la |du )(?:l['’])?(?:acc|ac[cè]|verif|vérif|segur|sécur|sicur|confirm|puerta|porta|porte|entr|alarm|desbloq|sms)"

_IS = r"(?:\b(?:is|was|are|be|it'?s|ist|war|lautet|lauten|es|era|est|était|sea|um|är|er|je|là|i\.e\.,?|d\. ?h\.|namely|nämlich|just|answer|c'est|heißt|wäre|sera|será|fue|foi|ficou|está|to|set|uses?|nutzt|usa|enter|type|try|value|wert|теперь|jetzt)|(?:^|\s)(?:[èé]|היא|هي)|は|が|に|改成|换成|改为|이|가|是|为|です。|為|는|은|[:=：→—]|=>|->)"
_NAME_AND_VALUE = r"[\w\"', :=-]{1,30}?\s{1,40}[\"']?(?:value|wert|valor|valeur)[\"']?(?:\s{0,9}[:=]\s?|\s{2,9})[\"']?"
# What stands between a name and a value (gap; made, if people make such values up), before the name, or between a value and a name behind it (as).
_EVIDENCE = (
    ("gap", r"\A\]?[\s\"'`*(\[{“「『«]{0,40}>?(?:default[ ])?\Z", 2),
    ("gap", _IS + r"(?:[ ](?:now|just|currently|still|always|jetzt|nun|noch|ahora|agora|maintenant|simply)){0,2}(?:[ ]string(?:\(\d{1,4}\))?)?[\s\"'`*(“„「『«:$>]{0,4}\Z", 3),
    ("gap", r"\A(?:[\s|│*`]|</?\w[^<>]{0,60}>){1,40}\Z", 1),
    ("gap", r"\A(?:[\s*`]|</?\w[^<>]{0,60}>){0,40}(?:[|│]|</?\w[^<>]{0,60}>|reg_\w+[ ])(?:[\s|│*`]|</?\w[^<>]{0,60}>){0,40}\Z", 3),
    ("gap", r"--(?:body|value|data)[ =][\"']?\Z|<<<[ ]{0,3}[\"']?\Z|\A[ ][05789][ ]\Z|\.(?:fill|type|send_?keys|setvalue|fill_in)\([\"']\Z", 4),
    ("gap", r"<\((?:echo|printf)[ ][\"']?\Z", 7),
    ("gap", r"\A[\"'`]?(?:,[ ]?|[ ]?/[ ]?)[\"'`]?\Z|[\w\"'`][ ]?/[ ][\"'`]?\Z", 3),
    ("behind", r"\A[\"'`]?[ ]to[ ]|\A#(?!\w)", 2),
    ("behind", r"\A[^\n]{0,12}\b(?:by|via|per|par|por)[ ](?:sms|e-?mail|text)\b", 2),
    ("said", r"(?:chang|cambi|wijzig|änder|setz|modifi|zmieni|alter|muda|ændr|endr|измен|помен)[^\n]{0,90}[ ](?:to|a|à|in|al|en|para|em|naar|auf|op|till?|på|na|на)[ ][\"'`„“«*]{0,3}\Z", 8),
    ("gap", r"(?:\b(?:with|as|auf|mit|als|con|com|avec|por)|\((?:currently|now|jetzt))[\s\"'`*(]{0,4}\Z", 2),
    ("gap", r"\A[_.?&/-](?:\w|\Z)", -4),
    ("made", r"(?:@|\?\w|://)\S*\Z|\b(?:must|should|shall|can|may|cannot|muss|soll|debe|doit|needs? to|has to)\b", -6),
    ("gap", r"\A[ _-]?(?:encod|polic|hash|field|reset|manager|strength|length|rule|input|prompt|form|valid|check|stor(?:e|age)\b|file|env|var|setting|option|flag|param|type|generat|algorithm|auth|protect|page|flow|grant|requirement|history|expir|column|handl|provider|backend|servic|util|helper|component|modul|schema|model|class|function|method|endpoint|route|support|login|count|digit|rotation|change\b|update\b)", -3),
    ("made", r"\A[ ]from[ ][\"'`]?\Z|\A[ ]content[ ]+:[ ]\Z|\A\s[-:]?\w{0,20}\s?[\"'`]\Z|\A[ ]{2,}\Z|\A[ ]{0,3}\t[ \t]*\Z", 2),
    ("gap", r"\A[\"'`)]?\?[ ]\Z", 3),
    ("gap", r"[{}\[\]<>\\].*\w", -1),
    ("gap", r"[ ]--(?!body|value|data)[a-z][\w-]*[ =]\Z", -4),
    ("behind", r"\A[ ]/\*", -6),
    ("gap", r"\).*\w", -1),
    ("gap", r"[,;|{}\n]\s*[\w\"'.()\]-]+(?:\s+[\w\"'.()\]-]+){0,7}\s?[:=：]\s?[\"']?\Z", -3),
    ("before", r"\{\{[^}]*\Z", -6),
    ("gap", r";base64,\Z|enc\[|\b(?:file|ids?|etag|commit|sha\d{0,3}|hash|digest|ref|trace|request|req|job|build|see|in|at|by|or|branch|tag|run|version|image|using|user|username|host|port|hashed with)[ :#=\"'`]{1,4}\Z|(?:id|_by|commit|hash|sha\d{0,3}|digest|etag)[\"'`]{0,2}\s?[:=][ \"'`]{0,2}\Z", -6),
    ("gap", r"\A[\"'`],\s{0,8}[\"'`]\Z|\A" + _NAME_AND_VALUE + r"\Z", 3),
    ("before", r"\b(?:get|show|find|read)[ -](?:[a-z]+-)?\Z", -3),
    ("before", r"(?:^|[\s\"'(\[])--?(?:[a-z][\w-]{0,30})?\Z", 3),
    ("as", "", -2),
    ("as", r"\A[\"'`!?)]{0,3}[,;]?[ ](?:as|for|is|was|that was|which (?:is|was)|als|comme|como|come|ist|war|es|(?:when|where|if|wherever)[ ](?:it|you|he|the)\b[^.!?]{0,30}\basks?[ ]for)(?:[ ](?:the|its|our|my|your|das|die|der|mein|la|le|el|a|an|o|old|new|right|current|default|admin|root|correct)){0,3}[ ](?:[\w-]{1,20}[ ]){0,2}\Z", 6),
    ("as", r"\A[\"'`]?(?:[);,]|\.\w{1,12}\(\)|</\w{1,30}>){0,6}\s{1,8}(?://|\#|/\*|<!--)[ ][^\n]{0,30}\Z", 5),
)  # fmt: skip


# Between a line that names a secret and the value on the next one.
_NEXT_LINE = r"[ \t]*(?:[ \t][|>][+-]?\d?[ \t]*)?\n\s{0,40}(?:(?:`{3}\w*|[-=*]{3,})[ \t]*\n\s{0,40})?(?:[>+|*#-]{1,3}[ \t]|\d{1,6}[→:)\t|]|=>|<\w{1,12}>|string\(\d{1,3}\)|\[[\w :.-]{2,30}\][ \t]|[ \t])*[\"'`]{0,3}\Z"
_LINE_AND_NEXT = r"[^\n]*(?:\n\s{0,40}(?:(?:`{3}\w*|[-=*]{3,})[ \t]*\n\s{0,40})?[^\n]*)?"
_AS_HEADING = r"[^\n]*\bcopy\b[^\n]*|[\"'`*#:.)\]}]{0,3}(?:(?: [^\W\d_]{1,20}){1,3}| (?:for|of|für|de|pour|para)[^.!?\n]{0,30})?"
_HANDS_OVER = r"(?:\b(?:with|mit|con|com|avec|just|answer|to|auf|is|ist|lautet|est|es)[ ]|[:=→][ ])[\"'`„“«]{1,2}[ ]?\Z|(?:\b(?:and|und|e|y|et)|/)[ ][\"'`„“«]{0,2}\Z"
_HANDS_A_NUMBER_OVER = r"(?:\b(?:with|mit|con|com|avec|just|answer|to|auf)|[:=→])[ ]\Z"
# Names whose value can be digits alone.
_IS_PASSWORD = r"(?:wi-?fi|wlan|wireless|network)[ -][kcs]|code[ ](?:du[ ])?wi|schlüsselinhalt|secret[ ](?:key[ ])?[=:(]|pin[ ]eingeben|key(?:[ ]content|[ ]')|pass(?:[wpc]|e?(?![a-z]))|wpa|pwd|pw|psk|securestring|masterauth|mdp|kennwort|senha|contrase|clave|wachtwoord|heslo|parola|şifre|lösenord|has[lł]o|пароль|[\u3040-\ud7af]"
_OF_DIGITS = r".*(?:pin|puk|tan|otp|code|código|codigo)|passw\w{1,3}|p(?:ass)?w\w?|kennwort|senha|contrase\w{1,2}|clave|[\u3040-\ud7af]+|.*schlüssel|(?:wi-?fi|wlan|wireless|network)[ -]\w+"


def _spoken_values(text: str, lowered: str, names: list[Match[str]]) -> Iterator[tuple[int, int]]:
    """Yield each value that looks like a secret and for which there is enough evidence around it."""
    last = done = 0
    shapes: dict[str, int] = {}
    starts = [name.start() for name in names]
    for start, end, may_be_chosen in _candidates(text, lowered, names):
        if start < done:
            continue
        last = bisect(starts, start - 1, last)
        before = start
        start, end = _trimmed(text, start, end)
        value = text[start:end]
        shape = shapes[value] = shapes[value] if value in shapes else _shape(value)
        if not shape and may_be_chosen:
            is_apart = text[start - 1 : start] in tuple("\"'`“„「«") or _compiled(r"[ ]?(?:\n|\Z)").match(text, end)
            shape = (_chosen(value) > (1 if is_apart else 2)) * (1 + (_kinds(value) == 3 or (not value.isalnum() and any(map(str.isdigit, value)))))
        if not shape:
            continue
        around = [name for name in names[max(0, last - 4) : last + 2] if start - 2 * REACH < name.start() < start or end <= name.start() < end + REACH]
        is_made_up = may_be_chosen or _compiled(_MADE_UP).fullmatch(text, start, end) is not None
        if any(_points(lowered, name, before, start, end, is_made_up=is_made_up) + shape >= THRESHOLD for name in around):
            yield start, end
            done = end


def _candidates(text: str, lowered: str, names: list[Match[str]]) -> Iterator[tuple[int, int, bool]]:
    """Yield what can be a value near one of the `names`, and whether only a name for passwords makes it one."""
    passwords = [name for name in names if name.lastgroup in ("talk", "place") or (name.lastgroup in ("strong", "pin", None) and name[0] != "token" and _compiled(_IS_PASSWORD).match(lowered, name.start()))]
    passwords = [name for name in passwords if name[0] != "pass" or not _compiled(_PASSES).search(lowered, max(0, name.start() - 12), name.end() + 9)]
    random = ((*span, False) for span in _random_candidates(text, names))
    yield from heapq.merge(_chosen_candidates(text, passwords), random) if passwords else random


def _chosen_candidates(text: str, passwords: list[Match[str]]) -> Iterator[tuple[int, int, bool]]:
    done = 0
    for name in passwords:
        start, stop = max(done, name.start() - REACH, 0), name.end() + REACH + 40
        if name.lastgroup in ("talk", "place"):
            start, stop = max(done, name.end()), text.find("\n", name.end(), stop) + 1 or stop
        tell = _compiled(_TELL_OF_CHOICE).search(text, start, stop)  # much faster, and most often there is none
        for value in _compiled(_MAY_BE_CHOSEN).finditer(text, max(start, tell.start() - 41), stop) if tell else ():
            if value.end() < stop:  # otherwise it can be cut
                yield (*value.span(), True)
                done = value.end()
        done = max(done, min(stop, name.end() + REACH))


def _random_candidates(text: str, names: list[Match[str]]) -> Iterator[tuple[int, int]]:
    classes = text.encode("ascii", "replace").translate(_CLASSES) + b" "
    for low, high in _near(text, names):
        words = {}
        for tell in _TELLS:
            at = classes.find(tell, low, high)
            while at >= 0:
                end = min(classes.find(b" ", at), high)
                start = classes.rfind(b" ", low, at) + 1 or low
                if end - start >= 6 or classes.startswith(b"000", at):
                    words[start] = end
                at = classes.find(tell, end, high)
        for start, end in sorted(words.items()):
            if end - start >= 6 or _compiled(r"\W{0,3}[0-9]{3}(?:[0-9]|[ ][0-9]{3}(?![0-9]))").match(text, start):
                yield from (value.span() for value in _compiled(_CANDIDATE).finditer(text, start, end + (5 if end - start == 3 else 2)) if value.start() < end)


# What a line holds alone, in a list, or in a chat, and what stands last in it.
_ALONE = r"(?:" + _CHAT + r")?[ \t>•–-]{0,12}(?:\* )?(?:[\"'`]|\*\*){0,2}(?P<value>[^\s\"'`<>()\[\]{}|=/\\]{6,40}?)[\"'`*]{0,3}[.]?[ \t\r]*(?:[ ]\([^()\n]{1,60}\)[ \t\r]*)?(?=\n|\Z)"
_LAST = r"(?![^\n]*\w[(\[])(?:" + _CHAT + r")?[^\n{};=<>$\\|]{0,200}(?:[:,(/–→-]|\b(?:just|it'?s|also|so|i\.e\.))[ ][`„“«*]{0,3}(?P<value>[^\s\"'`<>()\[\]{}|=/\\]{6,40}?)[\"'`”»*)]{0,3}[.]?[ \t\r]*(?:[ ]\([^()\n]{1,60}\)[ \t\r]*)?(?=\n|\Z)"
# The last word of a line, if it is no such value: nothing leads to it, or it is a plain word, short, a call, or other code.
_ENDS_PLAIN = r" (?<![:,(/–→\-tso.>\]•*\s] )(?=\S)[^\n]*(?<![)\s])\s*\Z|[ \t]*(?=\S)(?:[\"'`(]{0,2}(?:[^\W\d_]?[a-z]{0,10}|[a-z]{0,31})[\"'`]{0,2}(?:\)?[.,:;?])?[\"'`]?|\S*[{}<>|=/\\(\[\]]|\S{1,5}(?<!\)))\s*\Z|[^\n(]*[^\s(]\(|[^\w\n]*\w[^\t\"'`<>()\[\]{}|=/\\\n]*[\t\"'`<>()\[\]{}|=/\\][^\w\n]*\w[^\n]*(?<![)\s])\s*\Z"

# A line of prose, a word of it, and a word that stands out; what names a thing before a value.
_IS_PROSE = r"(?![^\n]*(?:[\"'][,:)\]]|\w[(\[]))(?![ \t]*#\w)(?![ \t]*[$%❯➜>#/*+-]{1,3} ?\w+ --?\w)(?:[^\n{};=<>$\\|]|(?<=\w)\$)*(?:\n|\Z)"
_WORD_IN_PROSE = rf"(?<![^{_END}“„「『(])[^\W_][^{_END}“„(){{}}\[\]/@:]{{7,40}}(?![^{_END}.:)!?]|[.:)!?]\w)"
_STANDS_OUT = r"[^\W\d_]{3,}\d\d+[!$*#&+]\Z|[A-Z][a-z]{2,}(?:[!%*^~][A-Z]?[a-z]{2,})+\Z|(?=.*[^\W_][^\W\d_](?:[&%!*^~$#]|\+(?=.*[A-Z]))[^\W_])|(?=[^\W\d_].*(?:[^\W\d_][-_.]|[-_.][^\W\d_]))(?=.*[A-Z][a-z])(?=.*\d)(?=.*[^\W\d_]{3})|[^\W\d_]{3,}\d+[A-Z][a-z]{2}|(?=.*[a-z]\d|.*\d[a-z])(?=.*[A-Z]\d|.*\d[A-Z])(?=.*[a-z][A-Z]|.*[A-Z]{2}).{10,40}\Z"
_MAY_STAND_OUT = r"[\d!%*^~&$#+](?:(?<=[^\s\d]\d)|(?<=\d)(?=[^\W\d_])|(?<=[^\W_]\D))"
_THINGS = r"(?:branch(?:es)?|tags?|versions?|releases?|tickets?|issues?|hosts?|servers?|machines?|models?|runs?|commits?|files?|folders?|images?|builds?|user[- ]?(?:names?|id)|users?|nutzer(?:name)?|benutzer(?:name)?|usuario|utilisateur|accounts?|customers?|kunden\w*|konto|compte|cuenta|ids?|ref|room|sprint|regions?|roles?|groups?|types?|names?|titles?|plans?|projects?|themes?|ssids?|serial|firmware)"
_NAMES_A_THING = r"(?i)(?:\b(?:" + _THINGS + r"|code|from|called|named|heißt|see|in|on|at|by|for|of|via)[ :]{1,2}|\n[ \t>*-]*" + _THINGS + r":?\n[ \t]*)[\"'`*(]{0,2}\Z|" + _PUBLIC_LABEL.removeprefix("(?i)")
# Parts by which somebody's password differs from a name: numbers behind words, signs inside, and more of it where nothing else is in the line.
_TELL = r"(?s).*(?:(?:[^\W\d]{3}|[-_.])\d\d|[^\W\d_]{3}\d+[A-Z]|[-_.]\d\Z|[!&%*^~$#][^\W_]|\+(?=.*[A-Z])[^\W_]|(?:\d|[-_.&][^\W\d_]+)[!$#]\Z)|(?=.*[A-Z]).*[-_][^\W\d_]{3,}\d\Z"
_TELL_ALONE = _TELL + r"|(?=.*[^\W\d_]{4})(?=.*[-_.A-Z])(?=.*\d[^\W\d_]|.*\d[-_.][^\W\d_]{2})|(?=.*[A-Z])[^\W\d_]{2,}(?:-[^\W\d_]{2,}){2,}\Z|[^\W\d_]{2,}(?:-[^\W\d_]{2,}){3,}\Z"
_LISTS_NAMES = _LISTS + r"|(?:^|[|;&] ?)(?:sudo )?(?:docker|kubectl|git|gh|npm|pip\d?|apt|systemctl|ps|tmux|helm|brew|cd|mkdir)\b(?! login)"


def _handed_over(text: str, names: list[Match[str]]) -> Iterator[tuple[int, int]]:
    """Yield what looks made up as a password in the line of a word for passwords or for logging in, and in the next four."""
    done = 0
    for name in names:
        if name.lastgroup not in ("talk", "place", "hint", "strong", None) or name[0] in ("pass", "token", "secret"):
            continue
        at = name.start()
        line = text.rfind("\n", max(0, at - 2 * REACH), at) + 1 or max(0, at - 2 * REACH)
        prompt = _compiled(_PROMPT).match(text, line)
        if prompt and _compiled(_LISTS_NAMES).search(text, prompt.end(), text.find("\n", line) % (len(text) + 1)):
            continue
        if name.lastgroup in ("strong", None):  # the line before it, too
            line = text.rfind("\n", max(0, line - REACH), max(0, line - 1)) + 1 or line
        for part in islice(_compiled(r"[^\n]{0,400}(?:\n|(?!\S))|[^\n]{400}").finditer(text, max(done, line)), 5):
            start, end = part.span()
            if start > at + 4 * REACH:
                break
            done = end
            ends_plain = end - start < 6 or _compiled(_ENDS_PLAIN).match(text, max(start, text.rfind(" ", start, end)), end)
            last = None if ends_plain else _compiled(_ALONE).match(text, start, end) or _compiled(_LAST).match(text, start, end)
            words = [last.span("value")] if last else []
            if start <= at + 2 * REACH and _compiled(_MAY_STAND_OUT).search(text, start, end) and _compiled(_IS_PROSE).match(text, start, end):
                words += [word.span() for word in _compiled(_WORD_IN_PROSE).finditer(text, start, end)]
            for number, span in enumerate(words):
                begin, stop = _trimmed(text, *span)
                is_last = last is not None and not number
                is_telling = is_last or _compiled(_STANDS_OUT).match(text, begin, stop)
                if is_telling and _is_made_up(text[begin:stop], is_alone=is_last and name.lastgroup != "hint") and not _compiled(_NAMES_A_THING).search(text, max(0, start - 30), begin):
                    yield begin, stop


def _parts(value: str) -> list[str]:
    return [part.lower() for part in _compiled(r"[A-Z]?[^\W\d_A-Z]+|[A-Z]+").findall(value)]


def _is_made_up(value: str, *, is_alone: bool = False) -> bool:
    """Return whether `value` is what somebody made up as a password rather than the name of a thing."""
    parts = _parts(value)
    if not parts or max(map(len, parts)) < 3 or not _TECHNICAL.isdisjoint(parts) or value[1:].isupper() or _compiled(rf"[A-Za-z]{{2,8}}_\w{{16,}}\Z|\S*\d\.\d|(?:[a-z\d-]+\.)+[a-z][a-z\d-]+\Z|\S+\.(?:\w{{2,4}}#|_)|{_NOT_PRINTED}").match(value):
        return False
    if _shape(value) > 2:
        return True
    is_literal = _compiled(r"(?=.*[A-Z])(?=.*\d)[^\W_].*|[a-z]{6,}_\d\d+").fullmatch(value) is not None
    return _compiled(_TELL_ALONE if is_alone else _TELL).match(value) is not None and _chosen(value, is_literal=is_literal) > 2


_NAMED_USER = r"[\"'`*]{0,3}(?P<user>[\w.+-]{2,40}(?:@[\w.-]{3,40})?)[\"'`*]{0,3}"
_PAIR = (
    r"[^\n]{0,40}?(?:[:(=→＝：は]|\b(?:with|as|is|are|use|mit|als|ist|con|como|com|avec|par))[ ]?" + _NAMED_USER
    + r"(?P<sign>:|(?:(?<=admin)|(?<=root))/|[ ]?/[ ]|[ ]?[,|+][ ]|[ ](?:and|und|y|et|e|with|mit|con|avec)[ ])[\"'`*]{0,3}(?P<value>[^\s\"'`<>|,()]{5,40}?)[\"'`*]{0,3}(?=[.,;!)]?(?:\s|\Z))"
)


def _pairs(text: str, names: list[Match[str]]) -> Iterator[tuple[int, int]]:
    """Yield the second of a user and a password behind a word that announces both."""
    for name in names:
        is_announced = name.lastgroup in ("talk", "place") and name[0] not in ("root", "admin")
        is_announced = is_announced or name[0].startswith(("passw", "pw", "cred", "zugang", "ident"))
        pair = _compiled(_PAIR).match(text, name.end()) if is_announced else None
        if pair is None or pair["user"].isdigit() or not _NO_CHOICE.isdisjoint({pair["user"]} - {"root", "admin", "user", "test", "username"}):
            continue
        value, sign = pair["value"], pair["sign"].strip()
        is_user = "@" in pair["user"] or text[pair.start("value") - 1] == "`"
        is_sure = is_user if sign == "/" else sign == ":" and not value.islower()
        lowest = 1 if is_sure else 2 if sign == "/" else 3
        is_literal = any(map(str.isdigit, value))
        is_list = sign == "," and not is_literal and set(value).isdisjoint(_SYMBOLS)
        if not is_list and (_chosen(value, is_literal=is_literal) >= lowest or _shape(value) > 2):
            yield pair.span("value")


_WORDS = r"(W(?:[ ._-]W){3,23}|(?<=[\"'`])W(?:[ _-]W){2}(?=[\"'`]))".replace("W", r"[^\W\d_A-Z]{3,12}")
_PHRASE = (
    r"[^\n]{0,60}?(?:"
    + _IS
    + r"[\s\"'`“„「*]{0,20}|(?<=phrase)(?:[\"'`]?[ ]|>)|:?[ ]?\n\s{0,8}(?:[>|*-][ ])?)" + _WORDS + r"(?=[\"'`”」,;!?<]|\.(?:\s|\Z)|[ ]?\n|\Z)"
)
_SEED = r"(?:[^\n]{0,120}\n){0,3}?[^\n]{0,60}?(?<![^\s:\"'`.)])((?:[a-z]{3,8}(?:[ ,|]{1,3}|[ ,|]{0,9}\n[ \t>|*-]{0,9})(?:#?\d{1,2}[.):]?[ \t]{1,3})?){11,23}[a-z]{3,8})(?![\w-])"
_QUOTED_WORDS = r"[^\n\"'`“「]{0,60}[\"'`“「]{1,3}" + _WORDS + r"(?=[\"'`”」])"
_QUOTED_CHOICE = r"\w{0,6}[ ](?:[^\n\"”'`]{0,40}\b(?:is|to|ist|auf|est|es)[ ]|=[ ])?[\"“'`](?=[^\n\"”'`]{0,30}\d)(?=\S{1,20}[ ])([^\W_][^\n\"”'`]{5,30})[\"”'`]"
_APP_PASSWORD = r"(?<![\w-])(?![0-9a-f -]{19})((?:[a-z0-9]{4}[ -]){3}[a-z0-9]{4})(?![\w-]| \w)"
_PHRASED = r"pass[_ -]?phrase|frase[ -]?(?:senha)?|.*(?:phrase|mnemonic|seed|words?|wallet|metamask)|passw"
_FUNCTION_WORDS = frozenset((
    "the this that these those and for not but are was were has have had can cannot will would should must may you your our its their with from into than then when which what been being does did done only also must need needs needed stored required used set sets wrong missing empty invalid valid correct minimum characters long words word same here there passphrase password phrase secret key file string value default none null true false enter der die das den dem ein eine ist sind war nicht und oder mit von aus für auf bei wird werden wurde muss kann los las una uno con por para que está son del como est sont les des une avec pour dans pas qui que sur não uma dos das com"
).split())  # fmt: skip


def _passphrases(text: str, names: list[Match[str]]) -> Iterator[tuple[int, int]]:
    """Yield what stands behind a word for a passphrase and is four or more words without a function word."""
    done = 0
    for name in names:
        if name.start() < done or name.lastgroup not in ("strong", "phrase") or not _compiled(_PHRASED).match(name[0]):
            continue
        end = name.end()
        if name[0].startswith("passw"):
            found = _compiled(_QUOTED_WORDS).match(text, end) or _compiled(_QUOTED_CHOICE).match(text, end) or _compiled(_APP_PASSWORD).search(text, end, end + REACH)
        else:
            seed = _compiled(_SEED).match(text, end) if name.lastgroup == "phrase" else None
            if seed and _FUNCTION_WORDS.isdisjoint(re.findall("[a-z]+", seed[1])):
                yield seed.span(1)
                done = seed.end()
                continue
            found = _compiled(_PHRASE).match(text, end)
            found = _compiled(_QUOTED_WORDS).match(text, end) if found and _FUNCTION_WORDS.intersection(found[1].split()) else found
        if found is None or (found.re.pattern == _APP_PASSWORD and len(_words(found[1])) > 2 and not (text[found.start() - 1] == "\n" == text[found.end() : found.end() + 1])):
            continue
        words = re.split("[ ._-]", found[1])
        is_prose = found.re.pattern == _QUOTED_CHOICE and not (_NO_CHOICE | _JOINS).isdisjoint(re.split(r"\W+", found[1].lower()))
        if not is_prose and not _FUNCTION_WORDS.intersection(words) and (name.lastgroup != "phrase" or "phrase" in name[0] or len(words) in (12, 15, 18, 21, 24)):
            yield found.span(1)
            done = found.end()


def _near(text: str, names: list[Match[str]]) -> Iterator[tuple[int, int]]:
    """Yield the parts of a text in which values are near a name: its line and the next."""
    next_line = _compiled(_LINE_AND_NEXT)
    low = high = known = 0
    for name in names:
        at = name.start()
        if at >= known:
            start = max(at - 3 * REACH, text.rfind("\n", max(0, at - 3 * REACH), at) + 1)
            if start > high:
                yield low, high
                low = start
            high = next_line.match(text, at, at + 5 * REACH).end()  # type: ignore[union-attr]
            line_end = text.find("\n", at, at + 2 * REACH)
            known = line_end if line_end >= 0 else at + 2 * REACH
    yield low, high


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """Cut punctuation from the end of a value, and a user and emphasis from its beginning."""
    value = text[start:end].rstrip(".:?)]}）」\\").removesuffix("**")
    value = value.rstrip("#") if value.rstrip("#").isdigit() else value
    end = start + len(value)
    before = _compiled(r"[({]?(?:\*\*)?(?:(?!arn:|urn:|data:|(?i:sha\d|md5)|h1:)(?:[a-z][a-z0-9_.@-]{1,40}[:/]|[A-Z][A-Za-z]{1,15}:)(?!/))?").match(value)
    if before is None or text[start + len(before[0]) : end].isdigit():
        return start, end
    return start + len(before[0]), end


def _points(lowered: str, name: Match[str], outer: int, start: int, end: int, *, is_made_up: bool) -> int:
    """Return the points that the word `name` and what stands around give to the value from `start` to `end`.

    `outer` is where the value begins with what was cut from it. A value that is made up of words needs a name for passwords.
    """
    at = name.start()
    kind = name.lastgroup or "strong"
    points = _NAME_POINTS[kind]
    before = lowered[max(0, at - 30) : at]
    name_end = _compiled(r"[a-z\xdf-\u024f\u0370-\u04ff]{0,20}").match(lowered, name.end()).end()  # type: ignore[union-attr]
    if lowered[start:end].replace(" ", "").isdigit() and not _compiled(_OF_DIGITS).fullmatch(lowered[at:name_end]):
        return -THRESHOLD
    if is_made_up and not _compiled(_IS_PASSWORD).match(lowered, at):
        gap = lowered[name_end : max(name_end, start)]
        if kind not in ("talk", "place") or name[0] == "ssid" or lowered[start:end] == lowered[start:end].upper() or not (_compiled(_HANDS_OVER).search(gap) or (lowered[start:end].isalnum() and _compiled(_HANDS_A_NUMBER_OVER).search(gap))):
            return -THRESHOLD
    if (kind not in ("strong", "key") or at >= start) and _compiled(_UUID).fullmatch(lowered, start, end):
        return -THRESHOLD
    if kind == "key":
        points += (_compiled(_OPENS).search(before) is not None) - 5 * (_compiled(_IS_UNIQUE).search(before) is not None)
    if kind == "code":
        if not _compiled(r"\d+|\d{3} \d{3}|(?:[a-z0-9]{4,6}-)+[a-z0-9]{4,6}").fullmatch(lowered, start, end):
            return -THRESHOLD
        points += 2 * (_compiled(_CODES).search(before) is not None or _compiled(_OF_CODES).match(lowered, name_end) is not None)
    if at >= start:
        places = {"as": lowered[end:at]}
        if "\n" in places["as"]:
            return -THRESHOLD
    else:
        gap = lowered[name_end : outer if name_end <= outer else start]
        if "\n" in gap and not _compiled(_NAME_AND_VALUE).fullmatch(gap):
            below = _compiled(_NEXT_LINE).search(gap)
            if below is None:
                return -THRESHOLD
            gap = gap[: below.start()]
            is_alone = _compiled(r"[\"'`*]{0,3}[ \t]*(?:\n|\Z)").match(lowered, end) is not None
            if not gap.rstrip().endswith((":", "=", ">", "：", "。")) and not (is_alone and _compiled(_AS_HEADING).fullmatch(gap)):
                return -THRESHOLD
            points += is_alone
            if is_made_up and gap.rstrip()[-1:] not in (":", "=", ">", "：", "。", "?"):
                return -THRESHOLD
        if len(gap) > REACH:
            return -THRESHOLD
        if kind == "key" and points < 3 and not lowered[start:end].strip(HEX) and not _compiled("[:=]").search(gap):
            return -THRESHOLD
        places = {"gap": gap, "before": before, "said": before + gap, "behind": lowered[end : end + 40], **({"made": gap} if is_made_up else {})}
    if kind in ("talk", "place") and _compiled(r"[^{}()\[\]<>=;/\\\n]*").fullmatch(places.get("gap", "=")):
        points += 1
    rows = (row for row in _EVIDENCE if row[0] in places)
    return points + sum(worth for place, pattern, worth in rows if _compiled(pattern).search(places[place]))


def _shape(value: str) -> int:
    """Return how much a value looks like a secret, from 0 (a name, a path, a version, …) to 4 points."""
    if value.isdigit() or _compiled(r"\d{3} \d{3}").fullmatch(value):
        return int(len(value) >= 4)
    if value.isalpha() and not is_random(value):
        return 0
    if _compiled(_GROUPS).fullmatch(value):
        return 2
    if _compiled(r"[A-Z][^\W\d_]{3,14}\d{2,4}[!$*#&+]").fullmatch(value):
        return 4
    if _compiled(_MADE_UP).fullmatch(value):
        return 1 if value.islower() or value[-2].isalpha() else 2 if value.isalnum() else 3
    if "=" in value.rstrip("=") or (_compiled(_NO_PASSWORD).match(value) and not ((not _words(value[:12]) if len(value) >= 20 else _kinds(value) == 3 and not _words(value)) and is_random(value))):
        return 0
    if _compiled(_UUID).fullmatch(value):
        return 2 if entropy(value) > MIN_ENTROPY else 0
    if _compiled(r"(?i)0x[0-9a-f]{1,40}").fullmatch(value):
        return 0
    if _compiled(_WORD_SIGN_NUMBER).fullmatch(value) and not (value.islower() or value.isupper()):
        return 2
    if len(value) < MIN_LENGTH:
        is_strong = _kinds(value) == 3 and set(value) & set(_SYMBOLS + "$@") and entropy(value) > MIN_ENTROPY
        return 3 if is_strong and not _compiled(_NOT_SECRET).match(value) else 0
    if not _looks_secret(value) or _is_name(value):
        return 0
    if not value.lower().strip(HEX + "-"):
        is_digest = len(value) in (40, 64)
        return (len(value) >= 16) + (len(value) >= 32) * (2 - is_digest) if "-" not in value else 0
    if _is_said(value):
        if _kinds(value) == 3 and not _compiled(_WORD_AND_NUMBER).match(value):
            return 5 if len(value) >= 14 and is_random(value) else 4
        return 4 if len(value) >= 20 and is_random(value) else 3
    if _compiled(_WORD_AND_NUMBER + r"{0,3}\w{0,3}").fullmatch(value):
        return 2
    return 1 if is_random(value) else 0


_GROUPS = r"(?=.*\d)(?=.*[A-Z])[A-Z0-9]{4,6}(?:-[A-Z0-9]{4,6}){1,5}|[a-z0-9]{4}(?:-[a-z0-9]{4}){3}|[a-z0-9]{6}\.[a-z0-9]{16}"


def _names(lowered: str, positions: list[int]) -> list[Match[str]]:
    """Return the names of secrets that begin at `positions` of a lower-case text."""
    match = _compiled(_NAME).match
    foreign = _compiled(_foreign_names()).match
    if lowered.isascii() and "kata" not in lowered:
        return [name for at in positions if (name := match(lowered, at))]
    return [name for at in positions if (name := match(lowered, at) or foreign(lowered, at))]


@cache
def _foreign_names() -> str:
    return "|".join(re.escape(word.replace("_", " ")) for word in ("kata_sandi", *_FOREIGN))


_NO_PASSWORD = r"[A-Za-z][\w.-]*-(?:[0-9a-f]{40}|[0-9a-f]{64})\Z|[a-z]+[/.-][^!#%^*+~?&]*\Z|/[a-z]|[a-z0-9-]+(?:\.[a-z0-9-]+)+\Z|[^@]+@[\w-]+\.\w|\w+://|[\w.-]+/[\w.-]+/|.*[({\[]|[^=]*=[^=]|[\w-]+\.(?:\d{1,4}|[a-z]\w{0,3}|[A-Z]{1,4})\Z|arn:|urn:|.*,|.*%[sd]"


# The letters that often follow a letter, behind it, counted in English and in code.
_PAIRS = frozenset(
    letters[0] + letter
    for letters in (
        "abcdgilmnprstuvy baeilorsu cacehiklortu daeiorsu eacdefglmnprstvwx faefiloru gaehinorsu haeiot iabcdefglmnoprstvz keis ladeilostuy maeimopu "
        "nacdefginostuv oabcdgklmnoprstuvw paehiloprstu qu racdegiklmnorstuy sacehilopstu tacehilorstuy uabceilmnprst vaei waeio xp yps ze"
    ).split()
    for letter in letters[1:]
)


def _words(value: str) -> list[str]:
    """Return the parts of `value` that can be words, by their pairs of letters."""
    words = []
    for piece in _compiled(r"[A-Z][a-z]{2,}|[a-z]{3,}|[A-Z]{4,}").findall(value):
        word = piece.lower()
        common = sum(map(_PAIRS.__contains__, map(str.__add__, word, word[1:])))
        if common >= 0.6 * (len(word) - 1):
            words.append(word)
    return words


def _is_name(value: str) -> bool:
    """Return whether `value` is words and numbers in a row: a name, an identifier, or a path."""
    words = _words(value)
    if not words or set(value) & set(_SYMBOLS + "$@"):
        return False
    parts = _compiled(r"[-_./:]+").split(value)
    for part in parts:
        letters = sum(map(str.isalpha, part))
        if (letters > 3 and 4 * sum(map(len, _words(part))) < 3 * letters) or 3 < len(part) - letters < len(part):
            return False
    return len(parts) > 1 or (len(words) > 1 and not _compiled(r"[a-z]\d+[a-z]").search(value))


_SYMBOLS = "!#%^*+~?&"
"""Symbols that passwords have and names do not."""


# The first small letter of a capitalized word does not count as a change.
_CHANGES = ("AAa", *(before + kind for before in "0aA!" for kind in "0aA!" if kind != before and before + kind != "Aa"))


def is_random(value: str) -> bool:
    """Return whether `value` is no words: its letters make none, and change to capitals and digits often."""
    if 2 * sum(map(len, _words(value))) >= len(value):
        return False
    if len(value) >= 12 and value.islower() and value.isascii() and value.isalpha():
        return True
    if len(value) >= 20 and value.islower() and value.isascii() and value.isalnum() and not value.isalpha():
        return True
    if len(value) >= 10 and value.isascii() and value.isalpha() and not value.islower() and 2 * sum(value[at : at + 2].lower() in _PAIRS for at in range(len(value))) < len(value):
        return True
    kinds = "".join(["0" if one.isdigit() else "a" if one.islower() else "A" if one.isupper() else "!" if one in _SYMBOLS else " " for one in value])
    changes = sum(map(kinds.count, _CHANGES))
    return changes / len(value) >= MIN_CHANGES and changes >= 3


def entropy(value: str) -> float:
    """Return the Shannon entropy of `value` in bits per character."""
    counts = [value.count(letter) for letter in set(value)]
    return -sum(n / len(value) * math.log2(n / len(value)) for n in counts)
