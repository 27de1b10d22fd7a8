"""Search: a question in, ranked chunks out.

`open_searcher` opens the memory of a project as it is on disk now. The service keeps snapshots open and
shares `combine`, which decides what is searched together and what the answers lack.
"""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import date
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from memkit.agents.omitted import asks_memory
from memkit.errors import EmbeddingError, IndexStoreError, MemkitError, NoDescriptorsError
from memkit.index import index_lock, is_up_to_date, open_snapshot, read_files
from memkit.index.catalog import also_searched, project_names
from memkit.index.chunk import BULLETS, SHOWN_ID_CHARACTERS, Chunk
from memkit.index.colleagues import ColleagueRows
from memkit.index.memory_files import CurrentFiles
from memkit.index.snapshot import Snapshot
from memkit.ipc import unindexed
from memkit.journal.tool_lines import read_call
from memkit.journal.turn_parts import read_parts
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.search import fusion
from memkit.search.corpus import Corpus, boosts_of, mask, recency_of
from memkit.search.corrections import NewestFirst, decided_first
from memkit.search.excerpts import make_excerpt, outcome_of
from memkit.search.fusion import Scores
from memkit.search.overview import Line
from memkit.search.pieces import fill, joined
from memkit.search.results import NOTE_CHARACTERS, Answer, Excerpt, Filters, Result, SearchRequest
from memkit.search.selection import BulletIndex, NewerEntry, Place, Selection, SupersededIndex, best_of
from memkit.search.shared_by import SharedMemory, interleaved, shared_by, shared_memory
from memkit.settings import SearchSettings, Settings, load
from memkit.text import one_line

if TYPE_CHECKING:
    from memkit.embedding import Embedder

    FindModel = Callable[[], tuple[Embedder | None, str]]

logger = logging.getLogger(__name__)

MOST_READ = 30
"""The number of chunks, best first, whose text is compared with the wording of the question."""

MOST_FILLED = 1000
"""The number of results to consider for a budget."""

NEAR_RELEVANCE = 0.45
NEAR_SCORE = 0.6
"""The least shares of the best relevance and of the best score. A result that has neither is left out.

The score keeps a short remark whose neighbors match. Among ten results, LoCoMo and BEAM (development sets)
lose at most 0.3 points of evidence, and two thirds of the results with a relevance below 0.2 are gone.
"""

NEAREST_RELEVANCE = 0.2
MOST_NEAREST = 3
"""If nothing is relevant enough, the titles of up to `MOST_NEAREST` entries of this relevance are shown."""

WAIT_SECONDS = 5.0
"""The wait for another process that writes the index, if there is an older index to read."""

FIRST_WAIT_SECONDS = 120.0
"""The same wait if there is no index yet."""


@dataclass(frozen=True, slots=True)
class _Found:
    """Everything about all chunks for one question.

    `allowed` chunks may become results. `raisable` ones are those and the ones that match too little.
    """

    arms: fusion.Arms
    ranking: fusion.Ranking
    context: fusion.Ranking
    relevance: Scores
    cosines: Scores
    boosts: Scores
    exact: NDArray[np.bool_] | None
    scores: Scores
    allowed: NDArray[np.bool_]
    raisable: NDArray[np.bool_]
    best: float
    problem: str


@functools.cache
def _threads() -> ThreadPoolExecutor:
    """Return threads that embed a question while its words are looked up: the model lets others run."""
    return ThreadPoolExecutor(thread_name_prefix="embedding")


class Searcher:
    """Answers questions about one project or several. It holds snapshots and model: ask it often.

        searcher = open_searcher(project, home, settings)
        for result in searcher.search("which port does staging use").results:
            print(result.id, result.chunk.content)
    """

    def __init__(
        self, memory: Sequence[Snapshot] | Corpus, settings: SearchSettings, embedder: Embedder | None,
        notes: Sequence[str] = (), names: Mapping[str, str] | None = None,
        colleagues: SharedMemory | None = None,
    ) -> None:
        """Search by words alone if `embedder` is None; `notes` are what every answer lacks.

        `names` maps the root of a project to its name; the default is the name of the directory. `colleagues`
        are asked too by `answer`, which serves questions, but not for what is shown unasked.
        """
        self.corpus = memory if isinstance(memory, Corpus) else Corpus(memory)
        self.settings = settings
        self.embedder = embedder
        self.notes = list(notes)
        self.weights = fusion.WEIGHTS
        self._names = names or {}
        self._colleagues = colleagues
        self._embedded: tuple[str, NDArray[np.float32]] | None = None

    def search(self, query: str, k: int | None = None) -> Answer:
        """Return the `k` best chunks for `query`."""
        return self.answer(SearchRequest(query, k))

    def answer(self, request: SearchRequest) -> Answer:
        """Return the results that `request` asks for."""
        started = time.perf_counter()
        results: list[Result] = []
        notes, best, nearest = self.notes, 0.0, list[Line]()
        if len(self.corpus) and request.query.strip():
            found = self._find(request)
            best = found.best
            notes = [*notes, found.problem] if found.problem else notes
            if best >= self._least(request):
                results = list(self._results(found, request))
            if not results:
                nearest = list(self._nearest(found, request))
        size = len(self.corpus)
        if self._colleagues is not None and request.query.strip():
            theirs, problem = self._of_colleagues(self._colleagues, request)
            notes = [*notes, *filter(None, [problem])]
            size += theirs.chunks
            results = interleaved(results, theirs.results, best, request, self.settings.k)
            best = max(best, theirs.best)
        return Answer(
            query=request.query, mode=self.settings.mode, degraded="; ".join(notes),
            took_ms=round((time.perf_counter() - started) * 1000, 3), results=results, best=best, chunks=size,
            nearest=[] if results else nearest,
        )

    def _least(self, request: SearchRequest) -> float:
        """Return the relevance that the best match needs: none for a search by vectors alone."""
        if request.minimum is not None:
            return request.minimum
        return 0.0 if self.settings.mode == "dense" else self.settings.best_relevance

    def _of_colleagues(self, shared: SharedMemory, request: SearchRequest) -> tuple[Answer, str]:
        nothing = Answer(request.query, self.settings.mode, "", 0.0, [])
        if self.embedder is None:
            return nothing, "colleagues' entries are found by vectors alone, and there are none"
        try:
            rows = shared.nearest(self._vector(request.query), request.filters)
        except (EmbeddingError, IndexStoreError) as error:
            logger.warning("%s", error)
            return nothing, f"without colleagues' entries: {error}"
        rows = [one for one in rows if one.text is None or not self.corpus.holds_text(one.text)]
        if not rows:
            return nothing, ""
        memory = ColleagueRows(rows, shared.root, self.settings.language)
        theirs = Searcher([memory], self.settings, self.embedder, names=self._names)
        theirs._embedded = self._embedded
        return theirs.answer(request), ""

    def _vector(self, query: str) -> NDArray[np.float32]:
        if self.embedder is None:
            raise EmbeddingError("there is no model")
        if self._embedded is None or self._embedded[0] != query:
            self._embedded = (query, self.embedder.embed_query(query))
        return self._embedded[1]

    def _nearest(self, found: _Found, request: SearchRequest) -> Iterator[Line]:
        near = found.raisable & (found.relevance >= NEAREST_RELEVANCE)
        for place, chunk in self._turns(self._places(found, request, near), MOST_NEAREST):
            yield self._line(place.position, chunk)

    def dated(self, filters: Filters) -> list[Line]:
        """Return a line for each entry that meets `filters`, in the order of time."""
        corpus = self.corpus
        positions = np.flatnonzero(mask(filters, corpus))
        _, firsts = np.unique(corpus.columns["entry"][positions], return_index=True)
        found = []
        for position in positions[np.sort(firsts)].tolist():
            chunk = corpus.chunk(position)
            if not chunk.is_bare:
                found.append(self._line(position, chunk))
        return sorted(found, key=lambda one: one.time)

    def _line(self, position: int, chunk: Chunk) -> Line:
        title = chunk.heading or one_line(chunk.content, NOTE_CHARACTERS)
        if chunk.kind == "team":
            title = f"{shared_by(chunk.source).get('author', '')}: {title}"
        name, root = self.corpus.shown_id(position), self.corpus.root(position)
        return Line(chunk.date, title, name, chunk.session, root)

    def places(self, request: SearchRequest) -> tuple[Scores, Scores, Iterator[tuple[Place, Chunk]]]:
        """Return the best `k` places for a caller that reads around them.

        Before them the relevance of each chunk, and its best cosine, 0 without a vector.
        """
        found = self._find(request)
        size = request.k or self.settings.k
        return found.relevance, found.cosines, self._turns(self._ordered(found, request), size)

    def _find(self, request: SearchRequest) -> _Found:
        corpus, query, mode = self.corpus, request.query, self.settings.mode
        has_vectors = self.embedder is not None and corpus.has_vectors
        embedded = _threads().submit(self._vector, query) if has_vectors else None
        lexical, passages, documents, coverage = corpus.lexical(query)
        if request.subject:
            coverage = corpus.match(request.subject).coverage
        dense, nearest, problem = None, None, ""
        if embedded is not None:
            try:
                dense, nearest = corpus.cosines(embedded.result())
            except EmbeddingError as error:
                logger.warning("%s", error)
                problem = f"searched by words alone: {error}"
        recency = np.zeros(len(corpus))
        if mode == "weighted" or self.settings.recency_boost:
            recency = recency_of(corpus, self.settings.half_life_days, date.today())
        arms = fusion.Arms(lexical, passages, documents, dense, recency)
        ranking = fusion.fuse(arms, corpus.layout, mode, self.weights)
        context = ranking
        if mode != "context":
            context = fusion.context(arms, corpus.layout, self.weights)
        boosts = boosts_of(corpus, self.settings, request.file, recency)
        scores = ranking.scores * boosts
        allowed, is_found = mask(request.filters, corpus), ranking.found
        exact = corpus.holders(query)
        if exact is not None and exact.any():
            # A question that is one name is answered first by the chunks that hold it.
            scores = scores + np.where(exact, 2 * scores.max() + 1, 0.0)
            is_found = is_found | exact
            if "." in query.partition("/")[2]:  # the path of a file, unlike CI/CD
                allowed &= exact
        relevant = fusion.relevance(coverage, nearest)
        best = round(float(relevant[allowed].max(initial=0.0)), 4)
        allowed &= is_found
        raisable = allowed.copy()
        if request.minimum is not None:
            allowed &= relevant >= request.minimum
        elif not request.budget:  # a budget is to be filled
            least = NEAR_SCORE * scores[allowed].max(initial=0.0)
            allowed &= (relevant >= NEAR_RELEVANCE * best) | (scores >= least)
        if mode == "context" and exact is None:
            gained = ranking.parts["wording"] = self._wording(query, scores, raisable)
            scores = scores + gained
            context = ranking = replace(ranking, scores=ranking.scores + gained)
        cosines = np.zeros(len(corpus)) if nearest is None else np.nan_to_num(nearest)
        return _Found(
            arms, ranking, context, relevant, cosines, boosts, exact, scores, allowed, raisable, best, problem
        )

    def _wording(self, query: str, scores: Scores, allowed: NDArray[np.bool_]) -> Scores:
        """Return what each of the best chunks gains because words of the question follow each other in it."""
        share = functools.cache(lambda lexical: lexical.wording(query))
        entries, days = self.corpus.columns["entry"], self.corpus.columns["day"]
        best, _ = best_of(np.flatnonzero(allowed), MOST_READ, scores, entries, days)
        gained = np.zeros_like(scores)
        for position in best[:MOST_READ].tolist():
            text = self.corpus.chunk(position).lexical_text
            gained[position] = self.weights.wording_weight * share(self.corpus.lexical_of(position))(text)
        return gained

    def _results(self, found: _Found, request: SearchRequest) -> Iterator[Result]:
        corpus = self.corpus
        size = MOST_FILLED if request.budget else request.k or self.settings.k
        ranked = self._ordered(found, request)
        shown: Iterator[tuple[Place, Chunk]]
        if request.budget:
            places: dict[int, Place] = {}
            numbered = (
                (places.setdefault(one.position, one).position, chunk) for one, chunk in islice(ranked, size)
            )
            shown = ((places[number], chunk) for number, chunk in fill(numbered, request.budget))
        else:
            shown = self._turns(ranked, size)
        for place, chunk in shown:
            position = place.position
            dense = None if found.arms.dense is None else found.arms.dense[position]
            root = corpus.root(position)
            yield Result(
                id=corpus.shown_id(position), chunk_id=corpus.id(position)[:SHOWN_ID_CHARACTERS], root=root,
                project=self._names.get(root) or Path(root).name, score=_rounded(place.score),
                relevance=round(float(found.relevance[position]), 4), chunk=chunk,
                lexical=_rounded(found.arms.lexical[position]),
                dense=None if dense is None or np.isnan(dense) else _rounded(dense),
                context=_rounded(found.context.scores[position]),
                merged=[{"id": corpus.shown_id(n), "kind": corpus.name("kind", n)} for n in place.merged],
                superseded=_mark(corpus, place.fact), changed_by=_mark(corpus, place.changed_by),
                explanation=_explain(found, position, place.score) if request.explain else {},
                excerpt=self._excerpt(place, chunk, request.query) if request.excerpts else None,
                team=shared_by(chunk.source) if chunk.kind == "team" else {},
                author=corpus.author(position),
            )

    def _turns(self, ranked: Iterator[tuple[Place, Chunk]], size: int) -> Iterator[tuple[Place, Chunk]]:
        """Yield the first `size` turns and other entries of `ranked`, best first.

        The pieces of a turn are one result. It has the best piece, and those that rank no lower than other
        results, as far as `joined` takes them.
        """
        entries = self.corpus.columns["entry"]
        first: dict[int, Place] = {}
        pieces: dict[int, list[tuple[int, Chunk]]] = {}
        for place, chunk in ranked:
            entry = int(entries[place.position])
            if entry not in first and len(first) == size:
                break
            first.setdefault(entry, place)
            pieces.setdefault(entry, []).append((place.position, chunk))
        for entry, place in first.items():
            yield place, joined(pieces[entry])

    def _ordered(self, found: _Found, request: SearchRequest) -> Iterator[tuple[Place, Chunk]]:
        # A change is found even if it matches less than results must.
        about = found.raisable & (found.relevance >= self.settings.best_relevance)
        return NewestFirst(self.corpus, request.query, found.relevance).ordered(
            decided_first(self.corpus, self._places(found, request, found.allowed)),
            self._places(found, request, about),
        )

    def _places(
        self, found: _Found, request: SearchRequest, allowed: NDArray[np.bool_]
    ) -> Iterator[tuple[Place, Chunk]]:
        corpus = self.corpus
        selection = Selection(
            scores=found.scores,
            own=found.context.parts["own"],
            exact=found.exact,
            allowed=allowed,
            lengths=corpus.columns["length"],
            entries=corpus.columns["entry"],
            days=corpus.columns["day"],
            repeat_cost=self.weights.repeat_cost if self.settings.mode == "context" else 0.0,
            about=found.relevance >= self.settings.best_relevance,
            raisable=found.raisable,
            superseded=corpus.derived(SupersededIndex) or None,
            # With a filter by kind, turns and bullets do not meet.
            bullets=None if request.filters.kind else corpus.derived(BulletIndex),
            with_rest=bool(request.budget),
        )
        asked: list[tuple[Place, Chunk]] = []
        for place in selection.places():
            chunk = corpus.chunk(place.position)
            if not chunk.is_bare:
                if self._only_asked(place.position, chunk):
                    asked.append((place, chunk))
                else:
                    yield place, chunk
        if request.lookups:
            yield from asked  # behind what they asked about

    def _only_asked(self, position: int, chunk: Chunk) -> bool:
        """Return whether the turn, or each turn that a bullet cites, only asked the memory."""
        if chunk.kind == "turn":
            return only_asked(self.corpus.turn_text(position))
        if chunk.kind in BULLETS:
            turns = self.corpus.derived(BulletIndex).turns(position)
            return bool(turns) and all(
                only_asked("\n".join(self.corpus.chunk(n).content for n in one.pieces)) for one in turns
            )
        return False

    def _excerpt(self, place: Place, chunk: Chunk, question: str) -> Excerpt:
        corpus, outcome = self.corpus, ""
        if chunk.kind == "turn":
            bullets = (n for n in place.merged if corpus.name("kind", n) == "summary")
            bullet = next(map(corpus.chunk, bullets), None)
            outcome = outcome_of(corpus.turn_text(place.position), bullet)
        return make_excerpt(chunk, outcome, corpus.lexical_of(place.position), question)


def _mark(corpus: Corpus, newer: NewerEntry | None) -> dict[str, str]:
    if newer is None:
        return {}
    return {"date": newer.date, "text": newer.text, "id": corpus.shown_id(newer.position)}


def _explain(found: _Found, position: int, score: float) -> dict[str, Any]:
    arms = {"lexical": found.arms.lexical}
    if found.arms.dense is not None and not np.isnan(found.arms.dense[position]):
        arms["dense"] = found.arms.dense
    ranked = {
        name: {"rank": 1 + int(np.count_nonzero(arm > arm[position])), "score": _rounded(arm[position])}
        for name, arm in arms.items()
    }
    return {
        **ranked,
        "passage": _rounded(found.arms.passages[position]),
        **{name: _rounded(part[position]) for name, part in found.ranking.parts.items()},
        "boost": _rounded(found.boosts[position]),
        "place": _rounded(score - found.scores[position]),
        "identifier": bool(found.exact is not None and found.exact[position]),
    }


def _rounded(value: float | np.float64) -> float:
    return round(float(value), 6)


def open_searcher(
    project: Project,
    home: Home,
    settings: Settings,
    announce: Callable[[str], None] = logger.info,
    *,
    all_projects: bool = False,
    find_model: FindModel | None = None,
) -> Searcher:
    """Return a searcher over the project and the user's memory, or over all projects.

    `find_model` returns the embedder, or None with the reason, for modes that need one.

    Index edited files first. If that fails, if another process holds the index for too long, or if the
    model is not available, search the existing index and explain it in the searcher's `notes`. Raise
    `IndexStoreError` or `EmbeddingError` if there is nothing yet.
    """
    notes: list[str] = []

    @functools.cache
    def model() -> tuple[Embedder | None, str]:
        if settings.search.mode == "lexical" or settings.embedding.provider == "none":
            return None, ""
        if find_model is not None:
            return find_model()
        from memkit.embedding import find_embedder

        return find_embedder(home, settings.embedding, announce)

    def open_one(one: Project) -> Snapshot | None:
        own = settings if one == project else load.load(home, one).settings
        return _open_updated(one, home, own, model, announce, notes)

    return combine(
        project, home, settings, settings.search, open_one, model, notes, all_projects=all_projects
    )


def combine(
    project: Project,
    home: Home,
    settings: Settings,
    search: SearchSettings,
    open_one: Callable[[Project], Snapshot | None],
    find_model: FindModel,
    notes: list[str],
    *,
    all_projects: bool = False,
    make_corpus: Callable[[Sequence[Snapshot]], Corpus] = Corpus,
) -> Searcher:
    """Return a searcher over all that a search of `project` looks into. `search` decides how it ranks.

    `open_one` brings a project up to date and returns its snapshot, None if it has no memory. A problem
    with another project than `project` becomes one of the `notes`. `find_model` returns the embedder, or
    None with the reason. Raise what `open_one` raises for `project`.
    """
    snapshots = [open_one(project)]
    for other in also_searched(project, home, search, all_projects=all_projects):
        try:
            snapshots.append(open_one(other))
        except NoDescriptorsError:  # nothing more can be opened: the answer would be partial or empty
            raise
        except (MemkitError, OSError) as error:
            logger.warning("%s", error)
            notes.append(f"{other.root} was not searched: {error}")
    found = [snapshot for snapshot in snapshots if snapshot is not None]
    colleagues = shared_memory(project, home, settings) if search.mode != "lexical" else None
    if not found and colleagues is None:
        return Searcher([], search, None)
    embedder, problem = find_model() if search.mode != "lexical" else (None, "")
    missing = sum(snapshot.missing for snapshot in found)
    if problem:
        notes.append(f"searched by words alone: {problem}")
    elif missing and embedder is not None:
        notes.append(f"searched {missing} chunks by words alone, because they have no vectors yet")
    names = project_names(home, (project.root, *(snapshot.root for snapshot in found)))
    return Searcher(make_corpus(found), search, embedder, notes, names, colleagues)


def _open_updated(
    project: Project, home: Home, settings: Settings, find_model: FindModel, announce: Callable[[str], None],
    notes: list[str],
) -> Snapshot | None:
    snapshot = open_snapshot(project, home, settings)
    files = read_files(project, home, settings, snapshot)
    if files.problems and snapshot is not None:
        notes += [f"{line}; searched its old text" for line in files.problems]
    if snapshot is None and not files:
        return None
    embedder, _ = find_model()
    if _is_current(project, snapshot, files, settings, embedder):
        return snapshot
    # 0.1 s, which a search of an up-to-date index need not pay
    from memkit.index import sync_project

    seconds = FIRST_WAIT_SECONDS if snapshot is None else WAIT_SECONDS
    try:
        with index_lock(home, seconds, announce):
            # Another process may have written meanwhile.
            newest = open_snapshot(project, home, settings, earlier=snapshot)
            unindexed.claim(home, project.root)
            files = read_files(project, home, settings, newest)
            if not _is_current(project, newest, files, settings, embedder):
                report = sync_project(
                    project, home, settings, later=True, files=files, embedder=embedder, announce=announce
                )
                if report.degraded and embedder is not None:
                    notes.append(report.degraded)
                notes += filter(None, [report.away])
    except (IndexStoreError, EmbeddingError) as error:
        if snapshot is None or isinstance(error, NoDescriptorsError):
            raise
        logger.warning("%s", error)
        notes.append(f"the newest entries may be missing: {error}")
    newest = open_snapshot(project, home, settings, earlier=snapshot)
    return newest or snapshot


def _is_current(
    project: Project, snapshot: Snapshot | None, files: CurrentFiles, settings: Settings,
    embedder: Embedder | None,
) -> bool:
    if snapshot is None or not is_up_to_date(snapshot, files, settings):
        return False
    return snapshot.root == project.root and (snapshot.missing == 0 or embedder is None)


def only_asked(section: str) -> bool:
    """Return whether all tool calls of a turn's `section`, if any, asked memkit or read its files.

    The answers of such a turn repeat other entries, which come first.
    """
    calls = read_parts(section).tools
    return bool(calls) and all(map(_is_lookup, calls))


def _is_lookup(line: str) -> bool:
    """Return whether a call asked memkit, from its line in a day file: name, input, and outcome."""
    call = read_call(line.removeprefix("- "))
    return asks_memory(call.name, {"skill" if call.name == "Skill" else "command": call.given})
