"""A fortnight of short sessions, as day files, and screens to compare with."""

from __future__ import annotations

import os
from pathlib import Path

from memkit.journal.extracts import overview_line
from tests.cli.conftest import lexical_memory
from tests.memory import Memory

SCREENS = Path(__file__).parent / "screens"
_WRITES = os.environ.get("SCREENS") == "write"


def check_screen(name: str, text: str) -> None:
    """Compare a screen with `screens/NAME.txt`; escapes are shown as `␛`.

    After a change, look at what `SCREENS=write pytest tests/cli` writes, and commit it.
    """
    path = SCREENS / f"{name}.txt"
    shown = "\n".join(line.rstrip() for line in text.replace("\x1b", "␛").split("\n"))
    if _WRITES:
        path.write_text(shown, encoding="utf-8")
    assert shown == path.read_text(encoding="utf-8")


def _turn(minute: str, turn: str, asked: str, did: str, answered: str, branch: str = "main") -> str:
    parts = [f"**Asked** {asked}", f"**Did** {did}" if did else "", f"**Answered** {answered}" if answered else ""]
    body = "\n\n".join(filter(None, parts))
    return f"\n### {minute} {asked} <!-- turn:{turn} branch:{branch} -->\n{body}\n"


def _session(
    minute: str, title: str, session: str, *parts: str, branch: str = "main", summary: str = ""
) -> str:
    mark = f" summary:{summary}" if summary else ""
    return f"\n## {minute} {title} <!-- session:{session} branch:{branch}{mark} -->\n" + "".join(parts)


_LATE = "c0ffee00-1111-4222-8333-444455556666"
_LONG = "beef0001-1111-4222-8333-444455556666"

DAYS = {
    "2026-11-09": "\n## 09:12 Which port does the staging gateway use? "
    "<!-- session:5e550001 branch:main turn:a0000001 -->\n\n"
    "**Did** Read deploy/gateway.yaml\n\n**Answered** It listens on 7443. 443 was taken by the proxy.\n",
    "2026-11-10": _session(
        "10:30", "The nightly build takes an hour", "5e550002",
        _turn("10:30", "a0000002", "The nightly build takes an hour",
              "Bash `make profile` → compile 41 min", "The compiler cache is thrown away each night."),
        _turn("10:55", "a0000003", "fix it", "Edit ci/nightly.yml · Bash `git commit` → [main 1a2b3c4] Keep the cache",
              "The nightly build keeps its cache now. It takes 14 minutes."),
    ) + _session(
        "15:02", "Money is a float", "5e550003",
        _turn("15:02", "a0000004", "Money is a float in three places, is that right?",
              "Grep `float` · Read src/money.py", "No. Amounts become integers of cents.", "feature/money"),
        branch="feature/money",
    ),
    "2026-11-11": _session(
        "23:41", "Rotate the vault keys by hand once", _LATE,
        _turn("23:41", "a0000005", "Rotate the vault keys by hand once", "Bash `bin/rotate --dry-run` → 4 keys",
              "Four keys would change. Shall I go on?"),
    ),
    "2026-11-12": _session(
        "00:17", "yes, all four", _LATE,
        _turn("00:17", "a0000006", "yes, all four", "Bash `bin/rotate` → rotated 4 keys",
              "All four keys are new. The old ones end on Friday."),
    ) + _session(
        "11:20", "日本語の住所が請求書で切れる", "5e550005",
        _turn("11:20", "a0000007", "日本語の住所が請求書で切れる", "Edit src/invoice.py",
              "住所の幅を文字数ではなく桁数で数えるようにしました。"),
    ),
    "2026-11-13": _session(
        "16:45", "Deploy of the billing service failed", "5e550006",
        _turn("16:45", "a0000008", "Deploy of the billing service failed",
              "Bash `kubectl rollout status` → failed: deadline exceeded", "The readiness probe asks a port that is gone."),
        _turn("16:58", "a0000009", "which port then", "Edit deploy/billing.yaml", "8081. The probe is fixed, not deployed yet."),
    ),
    "2026-11-16": _session(
        "09:05", "Review the migration of orders", "5e550007",
        "\n- Decided: orders move in batches of 5,000. <!-- grip:82c57f55 turns:a000000a -->\n"
        "- Open: who restarts the worker afterwards. <!-- grip:82c57f56 turns:a000000a -->\n",
        _turn("09:05", "a000000a", "Review the migration of orders", "Read db/migrate/0042_orders.sql",
              "Batches of 5,000 rows keep the lock below a second.", "feature/orders"),
        branch="feature/orders", summary="a000000a",
    ),
    "2026-11-17": "\n" + overview_line("14:00 [Note](#1400-note)", note="ab12cd34") + "\n" + _session(
        "13:10", "Login page shows ERR_404", "5e550008",
        _turn("13:10", "a000000b", "Login page shows ERR_404", "Grep `PolicyController` · Edit config/routes.rb",
              "A route was renamed. `PolicyController` has its old name back."),
    ) + "\n## 14:00 Note: Priya is on call this week <!-- note:ab12cd34 -->\nPriya is on call this week.\n",
    "2026-11-18": _session(
        "10:00", "Why are tests flaky on Windows?", "5e550009",
        _turn("10:00", "a000000c", "Why are tests flaky on Windows?", "Bash `pytest -q` → 1 failed, 811 passed",
              "They compare a path with slashes."),
    ) + _session(
        "17:30", "Write the release notes", "5e55000a",
        _turn("17:30", "a000000d", "Write the release notes", "Write docs/release-2.3.md", "They are in docs/release-2.3.md."),
    ) + _session(
        "18:10", "Undo that", "5e55000b",
        _turn("18:10", "a0000012", "Undo the last commit", "Bash `git revert HEAD` → failed: conflict in src/money.py",
              "src/money.py conflicts. I left it as it is."),
    ),
    "2026-11-19": _session(
        "09:30", "Orders: batches run twice", _LONG,
        _turn("09:30", "a000000e", "Orders: batches run twice", "Read db/migrate/0042_orders.sql · Edit src/orders/batch.py",
              "The lock was released before the commit. It is held until then now.", "feature/orders"),
        branch="feature/orders",
    ),
    "2026-11-20": "\n" + overview_line(
        "14:02–14:20 [Staging gateway port](#1402-staging-gateway-port) · 2 turns → Both name it.", turns="a000000f"
    ) + "\n" + overview_line(
        "18:00 [Orders: batches run twice](#1800-orders-batches-run-twice) · 1 turn → 212,000 orders moved.", turns="a0000011"
    ) + "\n" + _session(
        "14:02", "Staging gateway port", "5e55000c",
        _turn("14:02", "a000000f", "Does anything else use 7443?", "Grep `7443`",
              "Only the smoke test:\n\n```yaml\n# not a heading\nport: 7443\n```\n\n"
              "| where | port |\n|---|---|\n| staging | 7443 |\n| production | 443 |"),
        _turn("14:20", "a0000010", "Then document it", "Edit docs/ports.md · Edit README.md",
              "Both name it. See [the table](https://example.com/ports) and [above](#1402-staging-gateway-port).\n\n"
              "## Not a heading of memkit\n\n> quoted `code`\n\n1. one\n2. two <b>bold</b>"),
    ) + _session(
        "18:00", "Orders: batches run twice", _LONG,
        _turn("18:00", "a0000011", "run it on staging", "Bash `make migrate` → 0 failed",
              "212,000 orders moved, none twice.", "feature/orders"),
        branch="feature/orders",
    ),
}  # fmt: skip
"""Thirteen sessions on eleven days, in two weeks; one goes over midnight, one over two days."""

FACTS = (
    "# Memory\n\n## Facts <!-- compacted:2026-11-20 -->\n\n"
    "- Decided: amounts are integers of cents. (2026-11-10) <!-- fact:1f0c33aa turns:a0000004 -->\n"
)

ROLLUP = (
    "# 2026-W47 Orders and ports\n\n## Facts <!-- compacted:- rollup:0a1b2c3d -->\n\n"
    "- Decided: orders move in batches of 5,000, and the lock is held until the commit. A line that takes more than one "
    "row of a narrow screen ends here. (2026-11-19) <!-- fact:1f0c33ab grips:82c57f55 -->\n"
    "- Fact: `deploy/gateway.yaml` and the smoke test name 7443, the port of staging. (2026-11-20) "
    "<!-- fact:1f0c33ac grips:82c57f56 -->\n"
)
"""A rollup of the second week."""


def fortnight(root: Path) -> Memory:
    """A memory of these days, not indexed, for searches without a model."""
    files = {f"{day}.md": f"# {day}\n{text}" for day, text in DAYS.items()}
    return lexical_memory(root, {**files, "MEMORY.md": FACTS})
