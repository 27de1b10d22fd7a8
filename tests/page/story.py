"""What a small team asked and decided over five months: nine subjects, each with turns, files, and bullets."""

from __future__ import annotations

from typing import NamedTuple


class Said(NamedTuple):
    """One turn: a question, its answer, the files that it touched, and a bullet ("kind: text"), or "" for none.

    `output` is what its tools printed.
    """

    question: str
    answer: str
    files: tuple[str, ...] = ()
    bullet: str = ""
    output: str = ""


# fmt: off
STORY: dict[str, list[Said]] = {
    "gateway": [
        Said("Which port does the staging gateway listen on?",
            "The staging gateway listens on **7443**. Port 443 is taken by the old load balancer until it is retired.\n\n"
            "```yaml\ngateway:\n  listen: 7443\n  upstream: shop-api\n```", ("deploy/gateway.yaml",),
            "decision: The staging gateway listens on 7443, because 443 is taken by the old load balancer."),
        Said("The gateway answers 502 after a deploy. Why?",
            "The gateway keeps connections to the old upstream pods for 60 s. `proxy_next_upstream` now retries on "
            "another pod, and the readiness probe waits for the pool.", ("deploy/gateway.yaml", "deploy/probes.yaml"),
            "problem: 502 after a deploy came from gateway connections to upstream pods that were already gone."),
        Said("Move the staging gateway to 7444, please.",
            "Done in `deploy/gateway.yaml`. The firewall rule and the smoke test follow the new port of the gateway.",
            ("deploy/gateway.yaml", "tests/smoke/test_gateway.py"),
            "decision: The staging gateway moves to 7444; the firewall rule and the smoke test follow."),
        Said("Should the gateway terminate TLS or pass it through?",
            "The gateway terminates TLS. Certificates come from the cluster issuer and renew by themselves 30 days before "
            "they expire.", ("deploy/gateway.yaml", "deploy/issuer.yaml"),
            "decision: The gateway terminates TLS; the cluster issuer renews certificates 30 days before they expire."),
        Said("Add a request ID header in the gateway.",
            "The gateway sets `X-Request-Id` where a client sent none, and every upstream logs it.",
            ("deploy/gateway.yaml", "src/http/middleware.py"),
            "change: The gateway sets X-Request-Id where a client sent none."),
    ],
    "invoices": [
        Said("Write a function that exports invoices as CSV.",
            "`export(invoices)` in `src/billing/export.py` returns CSV text with number, customer, and total. It uses the "
            "`csv` module, so commas and quotes in customer names are escaped.",
            ("src/billing/export.py", "tests/billing/test_export.py"),
            "change: export(invoices) returns CSV text with the columns number, customer, and total."),
        Said("The umlauts in the exported invoices are broken in Excel.",
            "Excel takes a CSV file without a byte order mark for Windows-1252. The invoice export now writes the mark as "
            "its first character.\n\n| Program | Before | After |\n|---|---|---|\n| Excel | JÃ¶rg | Jörg |\n| Numbers | Jörg | Jörg |",
            ("src/billing/export.py",),
            "problem: Umlauts of invoices looked broken because Excel reads CSV without a byte order mark as Windows-1252."),
        Said("Are the invoice totals safe with floats?",
            "No: `round(2.675, 2)` gives 2.67. Totals of invoices are `decimal.Decimal` from the database on, and rounded "
            "half up once, at the end.", ("src/billing/money.py", "src/billing/export.py"),
            "decision: Totals of invoices are decimal.Decimal from the database on, rounded half up once, at the end."),
        Said("The accountants want semicolons in the invoice CSV.",
            "`delimiter=\";\"` for every invoice export, not only German ones.", ("src/billing/export.py",),
            "preference: Every invoice export uses semicolons; the accountants only use those."),
        Said("Which invoices does the export leave out?",
            "Drafts, and invoices whose customer was erased. Both are counted in the last line of the export.",
            ("src/billing/export.py", "tests/billing/test_export.py"),
            "finding: The export leaves out drafts and invoices of erased customers, and counts both."),
        Said("Do refunds appear as invoices with a negative total?",
            "As credit notes with their own number range, so that the sum of invoices stays the revenue.",
            ("src/billing/credit_notes.py",),
            "decision: Refunds are credit notes with a number range of their own, not negative invoices."),
    ],
    "webhooks": [
        Said("How do we verify webhooks of the payment provider?",
            "The signature is an HMAC-SHA256 of the raw body. `verify()` compares it in constant time before anything "
            "parses the webhook.", ("src/payments/webhooks.py", "tests/payments/test_webhooks.py"),
            "decision: Webhooks are verified by HMAC-SHA256 of the raw body, in constant time, before parsing."),
        Said("Webhooks arrive twice and customers get two receipts.",
            "The provider retries a webhook after 10 s. A webhook's event ID is now a unique key, so the second one is "
            "answered 200 and dropped.", ("src/payments/webhooks.py", "migrations/0042_webhook_events.sql"),
            "problem: Customers got two receipts because retried webhooks were handled twice; event IDs are unique now."),
        Said("Handle webhooks in a queue instead of the request?",
            "Yes: the webhook is stored and answered, and a worker handles it. The payment provider waits at most 5 s.",
            ("src/payments/webhooks.py", "src/queue/worker.py"),
            "decision: Webhooks are stored and answered at once; a worker handles them."),
        Said("What happens to webhooks while the database is down?",
            "The endpoint answers 503, and the provider retries the webhook for three days.",
            ("src/payments/webhooks.py",),
            "finding: While the database is down, webhooks are answered 503 and retried by the provider for three days."),
    ],
    "login": [
        Said("What broke the login page on Friday?",
            "A route was renamed: the login form posted to `/session`, and the controller has `/sessions`. The login test "
            "had a stub for that route.", ("src/login/controller.py", "templates/login.html"),
            "problem: The login page broke because its form posted to a renamed route that a test had stubbed."),
        Said("Add a second factor to the login.",
            "TOTP by RFC 6238 with ten recovery codes, each usable once. The login asks for it on a new device only.",
            ("src/login/totp.py", "src/login/controller.py", "tests/login/test_totp.py"),
            "change: The login has a second factor: TOTP with ten recovery codes, asked on new devices only."),
        Said("How long does a login session last?",
            "14 days without use, and 90 days at most. Changing the password ends all sessions of that login.",
            ("src/login/sessions.py",),
            "decision: A login session lasts 14 days without use, 90 days at most; a new password ends all."),
        Said("Passkeys for the login: now or later?",
            "Later. The library for passkeys has no stable release yet; the login keeps TOTP until then.", (),
            "open: Passkeys for the login wait for a stable release of the library."),
        Said("Login attempts should be limited.",
            "Five failed logins in 15 minutes for an account, fifty for an address, counted in Redis.",
            ("src/login/limits.py",),
            "decision: Failed logins are limited to five in 15 minutes for an account and fifty for an address."),
    ],
    "migrations": [
        Said("The migration of the orders table locks it for minutes.",
            "The migration adds the column without a default, fills it in batches of 5,000 rows, and then sets it NOT NULL "
            "by a validated constraint.", ("migrations/0038_orders_currency.sql", "src/db/backfill.py"),
            "pattern: Migrations add columns without a default, fill them in batches of 5,000, then set NOT NULL."),
        Said("What is left of the database migration?",
            "Two tables: `customers` and `addresses`.\n\n```sql\nselect count(*) from legacy.customers;\n```",
            ("migrations/0040_customers.sql",),
            "open: The migration of the tables customers and addresses is left."),
        Said("Can a migration be rolled back?",
            "Each migration has a down script, and CI runs up, down, up on a copy of the schema.",
            ("migrations/README.md", "ci/migrations.yml"),
            "pattern: Each migration has a down script; CI runs up, down, up."),
        Said("Why did migration 0041 fail in production only?",
            "Production has Postgres 14 and `MERGE` needs 15. CI runs migrations on 14 now.",
            ("migrations/0041_merge_addresses.sql", "ci/migrations.yml"),
            "problem: Migration 0041 failed in production because MERGE needs Postgres 15 and production has 14."),
    ],
    "build": [
        Said("Why is the nightly build slow?",
            "The compiler cache was thrown away at each build. With the cache on the runner's disk, the build takes 6 "
            "minutes instead of 21.", ("ci/build.yml",),
            "problem: The nightly build took 21 minutes because the compiler cache was thrown away."),
        Said("Pin the base image of the build.",
            "By digest, and a weekly job proposes the next one with the build's test results.",
            ("Dockerfile", "ci/build.yml"),
            "decision: The base image of the build is pinned by digest; a weekly job proposes the next one."),
        Said("The build runs out of disk space.",
            "Old layers stayed on the runner. The build prunes what is older than three days when less than 10 GB are free.",
            ("ci/build.yml", "ci/prune.sh"),
            "problem: Builds ran out of disk because old layers stayed; the runner prunes them now."),
        Said("Run the build's tests in parallel?",
            "Four workers: 7 minutes become 2. Two tests of the build shared a port, and now ask for a free one.",
            ("ci/build.yml", "tests/conftest.py"),
            "change: Tests of the build run with four workers: 7 minutes become 2."),
        Said("Which build made this image?",
            "`docker inspect` shows the commit and the number of the build in its labels.", ("Dockerfile",),
            "finding: An image names its commit and build in its labels."),
    ],
    "search": [
        Said("Product search misses plural forms.",
            "The search column uses the dictionary `simple`. With `english`, products are stemmed; the search index is "
            "built concurrently.", ("src/catalog/search.py", "migrations/0039_search.sql"),
            "problem: Product search missed plurals because its dictionary did not stem."),
        Said("Rank products in stock higher in the search.",
            "The search score is multiplied by 1.5 for products in stock, which a test keeps.",
            ("src/catalog/search.py", "tests/catalog/test_search.py"),
            "decision: The search score of products in stock is multiplied by 1.5."),
        Said("How fast is the product search with 200,000 products?",
            "9 ms at the median and 31 ms at the 99th percentile, with the search index in memory.",
            ("benchmarks/search.py",),
            "finding: Product search takes 9 ms at the median with 200,000 products."),
        Said("Suggest products while the customer types in the search.",
            "By trigrams, after two letters, at most eight products. The request of the search before it is aborted.",
            ("src/catalog/suggest.py", "web/search.ts"),
            "change: The search suggests at most eight products by trigrams after two letters."),
    ],
    "mail": [
        Said("Order mails land in the spam folder.",
            "The new mail server was missing in SPF. It is there now, and DKIM signs order mails with a 2048-bit key.",
            ("infra/dns.tf", "src/mail/send.py"),
            "problem: Order mails were taken for spam because the new mail server was missing in SPF."),
        Said("Send order mails in the customer's language.",
            "By the language of the order, not of the browser. Mail templates exist in English, German, and French.",
            ("src/mail/templates.py", "templates/mail/order.de.txt"),
            "decision: Order mails are in the language of the order, not of the browser."),
        Said("What if the mail server is down?",
            "Mails stay in the queue for 48 hours and are retried with doubled delays, at most an hour apart.",
            ("src/mail/send.py", "src/queue/worker.py"),
            "finding: Mails are retried for 48 hours with doubled delays."),
        Said("Plain text or HTML mails?",
            "Both parts in one mail. The HTML part loads nothing from the network.", ("src/mail/templates.py",),
            "preference: Mails have a text and an HTML part; the HTML part loads nothing."),
    ],
    "secrets": [
        Said("How are secrets rotated?",
            "By the vault, every ninety days; `bin/rotate` does it by hand. Services read secrets again on SIGHUP.",
            ("bin/rotate", "infra/vault.tf"),
            "pattern: The vault rotates secrets every ninety days; services read them again on SIGHUP."),
        Said("A secret was committed. What now?",
            "It was rotated within the hour, and a pre-receive hook scans for secrets from now on.",
            ("ci/secrets.yml",),
            "decision: A pre-receive hook scans each push for secrets."),
        Said("Who may read the production secrets?",
            "Only the deploy role. People get secrets of staging, for eight hours at a time.", ("infra/vault.tf",),
            "decision: Only the deploy role reads production secrets; people get staging for eight hours."),
    ],
}
# fmt: on
"""Turns by subject, oldest first."""

NOTES = [
    ("Ask before touching `deploy/gateway.yaml`: Mara owns it.", ("gateway", "people")),
    ("The accountants are back on Monday; show them the new invoice export then.", ("invoices",)),
]
