"""What programs start: `memkit recall` (the skill), `memkit mcp`, and `memkit statusline`."""

from __future__ import annotations

import logging
import sys

import click

from memkit.cli.context import Context, command
from memkit.errors import MemkitError
from memkit.text import CHARACTERS_PER_TOKEN

logger = logging.getLogger(__name__)

MOST_RESULTS = 20
"""The number of results to search for. The token budget decides how many are shown."""


@command("recall")
@click.option("--stdin", "from_stdin", is_flag=True, help="Read the question from stdin.")
def recall_command(context: Context, from_stdin: bool) -> None:
    """Search the memory for the question on stdin and format the results for a model.

    The recall skill uses this command; `memkit search` is for people. With --stdin, the exit status is always
    0, because a failing command would abort the skill. The model gets the error instead.

    \b
      memkit recall --stdin < question.txt
    """
    if click.get_current_context().args or not from_stdin:
        raise click.UsageError("recall is for the skill and needs --stdin; ask with `memkit search QUERY`")
    question = sys.stdin.buffer.read().decode("utf-8", "replace").strip()
    try:
        text, value = _recall(context, question)
    except Exception as error:  # reported to the model
        logger.error("recall failed", exc_info=error)
        problem = str(error)
        if not isinstance(error, MemkitError):
            problem = f"{type(error).__name__}: {error}"
        text = f"memkit could not search the memory: {problem}"
        value = {"error": problem, "results": []}
    context.report(value, text)


recall_command.allow_extra_args = True  # a question there gets the advice to use `memkit search`


def _recall(context: Context, question: str) -> tuple[str, dict[str, object]]:
    from memkit.hook.guide import session_facts
    from memkit.questions.layout import lay_out

    context.stay_in_project()
    memory = context.memory()
    budget = memory.settings.recall.budget_tokens
    if not question:
        waiting = memory.search_client().catch_up()
        facts = session_facts(context.project, budget * CHARACTERS_PER_TOKEN)
        if waiting:
            facts += f"\n\nNote: {waiting}."
        return facts, {"text": facts, "results": []}
    answer = memory.search(question, MOST_RESULTS)
    text = lay_out(answer, budget, context.project.root)
    # Without the question: stdin can be a file that the caller may not read.
    return text, {**answer.as_dict(with_query=False), "text": text}


@command("mcp")
@click.option("--build-index", is_flag=True, help="Bring the index up to date first.")
def mcp_command(context: Context, build_index: bool) -> None:
    """Serve this project's memory to an MCP client over stdin and stdout.

    A client starts this command itself; `memkit setup --mcp CLIENT` writes its entry. The tools are
    memory_search, memory_expand, memory_transcript, memory_timeline, memory_topics, memory_remember, and
    memory_forget. The memory is that of the working directory, or of --project. Needs the package mcp.

    \b
      memkit mcp
      memkit mcp --project ~/src/shop
    """
    from memkit.mcp.server import serve

    if build_index:
        context.memory().index()
    serve(lambda: context.memory(for_agent=True))


@command("statusline")
def statusline_command(context: Context) -> None:
    """Print one line for Claude Code's status line, from the JSON that it writes to stdin.

    It prints nothing if something fails. Add this to ~/.claude/settings.json:

    \b
      "statusLine": {"type": "command", "command": "~/.local/bin/memkit statusline"}

    \b
      memkit statusline --project ~/src/shop
    """
    from memkit.hook.status_line import line_for_stdin

    line = line_for_stdin(context.directory if context.names_project else "")
    context.report({"line": line}, *filter(None, [line]))
