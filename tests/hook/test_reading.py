"""Which commands Claude may run unprompted: one that only reads this project's memory, and no other."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memkit.hook.reading import is_reading_command, words_of

READING = [
    "memkit search gateway", "memkit search did ci fail", "memkit search 'which port?' -k 8",
    "memkit search -k8 deploy/gateway.yaml --path '*.md' --file src/a.py --full",
    'memkit search "staging gateway" --since=2w --kind turn', "memkit search --since='last monday' x",
    "memkit search 'what'\\''s the port'", "memkit search '$(touch x) `touch y` ; touch z!'",
    "memkit search 'naïve 記憶 \u2028 …'", "memkit search --help",
    "memkit expand 3fa9c1d07b52 20e3d2c8274c --json", "memkit cite 82c57f55 --context 10",
    "memkit transcript", "memkit transcript 8bb06550-1f --turn 8b52f4fb --context 0",
    "memkit show yesterday", "memkit show 2026-11-20 --json", "memkit sessions",
    "memkit sessions -n 20 --since 2w --branch feature/x --file src/a.py",
    "memkit resume staging gateway port", "memkit resume 8bb06550 --json",
    "memkit resume 'what'\\''s $(left)' -h", "memkit why src/a.py",
    "memkit why -n 5 '../outside/a b.py' --json", "memkit why -n5 .hidden", "memkit topics",
    "memkit topics -n 50 --json", "memkit topics -n50", "memkit topics show 5f0c0e0a --json",
    "memkit topics related 5f0c -n 5", "memkit topics search payment 'webhooks, $(left)' rename",
    "memkit timeline", "memkit timeline 2026-W47 --children --json",
    "memkit timeline 2026-11 --depth 3 --limit 20 --after 2026-W46",
    "memkit timeline 2026-11-20 --events --after a000000f.3",
    "memkit timeline a000000f --search='gateway $(port)'", "memkit timeline --help",
    "memkit recall --stdin <<'MEMKIT_QUESTION'\nwhat's $(touch x)\n`touch y`\nMEMKIT_QUESTION\n",
    "memkit recall --stdin <<'!MEMKIT_QUESTION'\n!MEMKIT_QUESTION",
]  # fmt: skip
OTHER_COMMANDS = [
    "", "memkit", "memkit ", "memkit off", "memkit config set index.uri http://example", "memkit forget x",
    "memkit remember x", "memkit edit", "memkit work", "memkit export", "memkit service stop",
    "memkit searching x", "memkit 'search' x", "memkit se''arch x", "memkit -v search x",
    "memkit --set recall.other_projects=true search x", "memkit search --set search.k=9 x",
    "memkit --project /p search x", "memkit --home /x search", "'memkit' search x", "mem''kit search x",
    "\\memkit search x", "Memkit search x", " memkit search x", "\nmemkit search x", "memkit\tsearch x",
    "memkit search\tx", "memkit.exe search x", "/tmp/memkit search x", "./memkit search x",
    "bin/memkit search x", "CLAUDECODE= memkit search x", "PATH=/tmp memkit search x", "env memkit search x",
    "env -i memkit search x", "command memkit search x", "exec memkit search x", "eval memkit search x",
    "builtin memkit search x", "sudo memkit search x", "time memkit search x", "! memkit search x",
    "if true; then memkit search x; fi", "alias memkit=touch", "cd /tmp && memkit search x",
    'eval "$(memkit search x)"', "source <(memkit search x)",
]  # fmt: skip
SHELL_TRICKS = [
    "memkit search x; touch y", "memkit search x;touch y", "memkit search x\ntouch y",
    "memkit search x\r\ntouch y", "memkit search x\rtouch y", "memkit search x \\\ntouch y",
    "memkit search 'x\ny'", "memkit search x && touch y", "memkit search x || touch y",
    "memkit search x | sh", "memkit search x |& sh", "memkit search x > y", "memkit search x>y",
    "memkit search x >> y", "memkit search x 2>&1", "memkit search x >&y", "memkit search < y",
    "memkit search <<< y", "memkit search <<EOF\n$(touch y)\nEOF", "memkit search <(touch y)",
    "memkit search >(touch y)", "memkit search x &", "memkit search x & touch y", "(memkit search x)",
    "{ memkit search x; }", "memkit search x)", "memkit search $(touch y)", "memkit search `touch y`",
    'memkit search "$(touch y)"', 'memkit search "`touch y`"', 'memkit search "x"$(touch y)',
    "memkit search 'x'$(touch y)", 'memkit search "a\\"; touch y; \\""', "memkit search 'a'\\'; touch y; '",
    "memkit search 'a\\'; touch y; '", "memkit search 'a\\'", "memkit search $'a'", 'memkit search $"a"',
    "memkit search $HOME", "memkit search ${HOME}", "memkit search${IFS}x",
    "memkit search x${IFS}--project${IFS}/other", "memkit search $((1+1))", "memkit search $[1+1]",
    'memkit search "$HOME"', 'memkit search "!!"', "memkit search !!", "memkit search !$",
    "memkit search ^a^b", "memkit search ~/x", "memkit search ~", "memkit search --file=~/x",
    "memkit search =ls", "memkit search ''=ls", "memkit search a=~/x", "memkit search *", "memkit search a?",
    "memkit search [ab]", "memkit search {a,b}", "memkit search {1..9}", "memkit search +(a)",
    "memkit search @(a)", "memkit search x # y", "memkit search #x", "memkit search 'x", 'memkit search "x',
    "memkit search x\\", "memkit search \\x", "memkit search \x00x", "memkit search 'x\x00'; touch y",
    "memkit search x\x1b[2K", "memkit search 'x\ry'", "memkit search 'x\x7f'", "memkit search x\x0by",
    "memkit search ö", "memkit search\u00a0x", "memkit search x\u00a0y", "memkit\u2003search x",
    "memkit\u200b search x", "m\u0435mkit search x", "memkit se\u0430rch x", "\ufeffmemkit search x",
    "memkit search x\uff1b touch y", "memkit search \u201cx\u201d", "memkit search x\u037e touch y",
    "memkit search " + "x" * 200_000, "memkit search " + "x" * 90_000 + ";",
]  # fmt: skip
# `words_of` reads all commands alike, so `SHELL_TRICKS` has each trick once.
OTHER_PLACES = [
    "memkit search x --all-projects", "memkit search x '--all-projects'", 'memkit search x --all-pr""ojects',
    "memkit search x --project /other", "memkit search x --project=/other",
    "memkit search x '--project=/other'", "memkit search -- --project /other",
    "memkit search --since -- --project /other", "memkit search x --proj /other", "memkit search --batch -",
    "memkit search --batch=questions", "memkit search x -", "memkit search x -x", "memkit search x -kx",
    "memkit search x --output y", "memkit search -- --output", "memkit search x --config y",
    "memkit search x --env-file=y", "memkit expand x --turn y", "memkit cite x --project /other",
    "memkit cite ../x", "memkit sessions --all-projects", "memkit sessions --project /other",
    "memkit show /etc/passwd", "memkit show ..", "memkit show s.jsonl", "memkit show x --pager less",
    "memkit resume --go", "memkit resume x --go", "memkit resume x '--go'", 'memkit resume x "--go"',
    "memkit resume x --g", "memkit resume x --go=", "memkit resume x '--go=1'", "memkit resume -- --go",
    "memkit resume x -g", "memkit resume x -n 3", "memkit resume \\--go", "memkit why a.py --project /other",
    "memkit why a.py --pager less", "memkit why -nx a.py", "memkit why -- -n", "memkit topics rename x y",
    "memkit topics 'rename' x y", 'memkit topics re""name x y', "memkit topics -n 5 rename x y",
    "memkit topics -n5 rename x y", "memkit topics --json rename x y", "memkit topics --json 5 rename x y",
    "memkit topics -- rename x y", "memkit topics '' rename x y", "memkit topics x", "memkit topics Show x",
    "memkit topics show x --refresh", "memkit topics --refresh", "memkit topics '--refresh'",
    "memkit topics --refresh=1", "memkit topics --background", "memkit topics show x --background",
    "memkit topics show x --project /other", "memkit topic show x", "memkit timeline --project /other",
    "memkit timeline 2026 --project=/other", 'memkit timeline 2026 --pro""ject /other',
    "memkit timeline --search -- --project /other", "memkit timeline --output y", "memkit timeline -o y",
    "memkit timeline -n 5", "memkit timeline -k5", "memkit timeline --rebuild", "memkit timeline --child",
    "memkit timeline --stdin <<'EOF'\nx\nEOF", "memkit timelines", "memkit toc 2026",
    "memkit recall --stdin < questions", "memkit recall --stdin",
    "memkit recall --stdin <<EOF\n$(touch x)\nEOF", "memkit recall --stdin <<'EOF'\nx\nEOF\ntouch y",
    "memkit recall --stdin <<'EOF'\nx\nEOF\ntouch y\nEOF", "memkit recall --stdin <<'EOF'\nx",
    "memkit recall --stdin <<'EOF'\nx\n EOF", "memkit recall --stdin <<-'EOF'\nx\n\tEOF",
    "memkit recall --stdin <<'EOF' ; touch y\nx\nEOF",
    "memkit recall --stdin --project /other <<'EOF'\nx\nEOF", "memkit search --stdin <<'EOF'\nx\nEOF",
    "memkit transcript /home/other/.claude/projects/p/s.jsonl", "memkit transcript s.jsonl",
    "memkit transcript '../s'", "memkit transcript 's'/x",
]  # fmt: skip


def test_a_command_that_only_reads_this_memory_is_allowed() -> None:
    assert [one for one in READING if not is_reading_command({"command": one, "description": "Look"})] == []


def test_any_other_command_is_left_to_the_client() -> None:
    others = OTHER_COMMANDS + SHELL_TRICKS + OTHER_PLACES
    assert [one[:100] for one in others if is_reading_command({"command": one})] == []


_FRAGMENTS = st.sampled_from(
    """memkit search expand a0 -k 8 --since =2w -- x;y ' " '' "" 'a' "b" ' ' \\ \\' $ $x `a` ( ) { } {a,b} * ? [a]
    ~ # ! & | < > = - = % ^ @ + , : / . … ö""".split() + [" ", " ", "\t", "\u00a0", "'a b'", '"c d"', "'$x'", "'*'"]
)


@given(st.lists(_FRAGMENTS, max_size=8).map("".join), st.text(max_size=12))
@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_a_shell_reads_the_very_words_that_the_check_read(shells: Shells, rest: str, quoted: str) -> None:
    for command in (f"memkit search {rest}", f"memkit search {rest}'{quoted}'", f'memkit search "{quoted}" {rest}'):
        if is_reading_command({"command": command}):
            words = words_of(command)
            assert words is not None
            shells.check(command, words, "bash")


def test_a_shell_reads_the_words_of_usual_commands(shells: Shells) -> None:
    for command in (one for one in READING if "<<" not in one):
        words = words_of(command)
        assert words is not None
        shells.check(command, words)


class Shells:
    """Shells in a directory with files for patterns to find."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        for name in ("a", "x", "=a", "-k"):
            (directory / name).touch()

    def check(self, command: str, words: list[str], *shells: str) -> None:
        script = f"memkit() {{ printf '%s\\0' \"$@\"; }}\n{command}"
        for shell in shells or ("bash", "sh"):
            done = subprocess.run([shell, "-c", script], cwd=self._directory, capture_output=True, check=True)
            assert done.stdout == b"".join(os.fsencode(word) + b"\0" for word in words)
            assert done.stderr == b""


@pytest.fixture(scope="module")
def shells(tmp_path_factory: pytest.TempPathFactory) -> Shells:
    return Shells(tmp_path_factory.mktemp("shells"))
