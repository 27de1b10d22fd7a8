"""`memkit recall`: what the memory-recall skill puts before the model."""

from __future__ import annotations

import logging
import sys

import click

from memkit.cli.context import Context, command, plain
from memkit.errors import MemkitError

logger = logging.getLogger(__name__)

MOST_RESULTS = 20
"""Asked of the search; the budget of tokens decides how many are shown."""


@command("recall")
@click.option(
    "--stdin", "from_stdin", is_flag=True, required=True, help="Read the question from stdin."
)
def recall_command(context: Context, from_stdin: bool) -> None:
    """Search the memory for the question on stdin and lay the results out for a model.

    It always exits 0: a failing command would abort the skill that runs it, so what went wrong is
    said to the model instead.

    \b
      memkit recall --stdin < question.txt
    """
    question = sys.stdin.buffer.read().decode("utf-8", "replace").strip()
    try:
        text, value = _recall(context, question)
    except Exception as error:  # said to the model; the log has the rest
        logger.error("recall failed", exc_info=error)
        problem = (
            str(error) if isinstance(error, MemkitError) else f"{type(error).__name__}: {error}"
        )
        text = f"memkit could not search the memory: {problem}"
        value = {"error": problem, "results": []}
    if context.as_json:
        context.print_json(value)
    else:
        click.echo(plain(text))


def _recall(context: Context, question: str) -> tuple[str, dict[str, object]]:
    from memkit.hook.session_facts import session_facts
    from memkit.recall.answers import SearchRequest
    from memkit.recall.ask import Asker
    from memkit.recall.layout import lay_out

    context.stay_in_project()
    settings = context.settings()
    budget = settings.recall.budget_tokens
    if not question:
        brief = session_facts(context.project, budget * 4)
        return brief, {"text": brief, "results": []}
    asker = Asker(context.project, context.home, settings, context.say)
    answer = asker.answer(SearchRequest(question, MOST_RESULTS))
    text = lay_out(answer, budget, context.project.root)
    # Not the question: stdin can be any file, which whoever runs this may not be allowed to read.
    return text, {**answer.as_dict(with_query=False), "text": text}
