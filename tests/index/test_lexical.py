from __future__ import annotations

import json
import shutil
import stat
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rank_bm25 import BM25Plus

from memkit.errors import IndexStoreError
from memkit.index import lexical, tokens
from memkit.index.lexical import LexicalIndex, StaleSnapshotError, fingerprint
from memkit.index.tokens import Tokenizer
from tests.ci import examples

DOCUMENTS = {
    "c3": "The staging gateway listens on 7443; deploy/gateway.yaml says so.",
    "a1": "PolicyController rejects the request with ERR_404.",
    "b2": "Gateways, gateways, gateways. Nothing but gateways.",
    "d4": "東京タワーに行く",
    "e5": "",
}

WORDS = ["gateway", "port", "policy", "staging", "retry", "ERR_404", "a/b.py", "東京", "the"]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)
QUERIES = st.lists(st.sampled_from([*WORDS, "unknown"]), max_size=6).map(" ".join)
CORPORA = st.dictionaries(st.text(max_size=4), TEXTS, max_size=12)


def index_of(documents: dict[str, str]) -> LexicalIndex:
    return LexicalIndex().updated(documents.items())


def assert_same(index: LexicalIndex, documents: dict[str, str], queries: list[str]) -> None:
    """The index is to the bit what a fresh one of `documents` is."""
    fresh = index_of(documents)
    assert list(index.ids) == list(fresh.ids) == sorted(documents)
    assert len(index) == len(documents)
    for query in queries:
        match, expected = index.query(query), fresh.query(query)
        assert match.scores.dtype == match.coverage.dtype == np.float64
        assert match.scores.tobytes() == expected.scores.tobytes()
        assert match.coverage.tobytes() == expected.coverage.tobytes()


def assert_is_bm25_plus(index: LexicalIndex, documents: dict[str, str], query: str) -> None:
    """Scores are those of rank-bm25, less what it adds to every document alike."""
    tokenize = Tokenizer().tokenize
    corpus = [tokenize(documents[name]) for name in sorted(documents)]
    scores = index.query(query).scores
    if not any(corpus):  # rank-bm25 divides by the mean length
        assert not scores.any()
        return
    plain = BM25Plus(corpus)
    terms = tokenize(query)
    constant = sum(plain.delta * plain.idf.get(term, 0) for term in terms)
    np.testing.assert_allclose(scores, plain.get_scores(terms) - constant, rtol=0, atol=1e-9)
    held = [bool(set(terms) & set(document)) for document in corpus]
    assert (scores > 0).tolist() == held


def read_files(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


@settings(deadline=None)
@given(CORPORA, QUERIES)
def test_scores_equal_rank_bm25(documents: dict[str, str], query: str) -> None:
    assert_is_bm25_plus(index_of(documents), documents, query)


@settings(deadline=None)
@given(
    CORPORA,
    st.lists(st.tuples(st.text(max_size=2), TEXTS), max_size=15),
    st.lists(QUERIES, min_size=1, max_size=3),
)
def test_additions_and_removals_leave_no_trace(
    documents: dict[str, str], changes: list[tuple[str, str]], queries: list[str]
) -> None:
    index = index_of(documents)
    present = dict(documents)
    for name, text in changes:
        if name in present:
            index = index.updated([], [name])
            del present[name]
        else:
            index = index.updated([(name, text)])
            present[name] = text
        assert_same(index, present, queries)
        assert_is_bm25_plus(index, present, queries[0])


@settings(deadline=None, max_examples=examples(40))
@given(saved=CORPORA, later=CORPORA, queries=st.lists(QUERIES, min_size=1, max_size=3))
def test_a_loaded_index_is_updated_like_any_other(
    tmp_path_factory: pytest.TempPathFactory,
    saved: dict[str, str],
    later: dict[str, str],
    queries: list[str],
) -> None:
    root = tmp_path_factory.mktemp("lexical")
    index_of(saved).save(str(root / "before"))
    index = LexicalIndex.load(str(root / "before"))
    assert_same(index, saved, queries)

    index = index.updated(
        [(name, text) for name, text in later.items() if saved.get(name) != text],
        [name for name in saved if saved[name] != later.get(name)],
    )
    assert_same(index, later, queries)

    index.save(str(root / "after"))
    index_of(later).save(str(root / "fresh"))
    assert read_files(root / "after") == read_files(root / "fresh")
    assert_same(index, later, queries)
    assert_same(LexicalIndex.load(str(root / "after")), later, queries)
    shutil.rmtree(root)


@settings(deadline=None)
@given(CORPORA, QUERIES)
def test_coverage_is_the_share_of_the_query(documents: dict[str, str], query: str) -> None:
    index = index_of(documents)
    match = index.query(query)
    asked = set(Tokenizer().tokenize(query))
    for name, score, coverage in zip(index.ids, match.scores, match.coverage, strict=True):
        held = asked & set(Tokenizer().tokenize(documents[name]))
        assert (coverage > 0) == (score > 0) == bool(held)
        assert coverage <= 1
        assert (coverage == 1) == bool(asked and held == asked)


def test_rare_and_unknown_terms_weigh_most_in_the_coverage() -> None:
    index = index_of({"a": "gateway port", "b": "gateway retry", "c": "gateway"})
    common, rare = np.log(4 / 3), np.log(4 / 1)
    assert index.query("gateway port").coverage == pytest.approx(
        [1, common / (common + rare), common / (common + rare)]
    )
    assert index.query("gateway unknown").coverage == pytest.approx(
        [common / (common + rare)] * 3
    )


@settings(deadline=None)
@given(CORPORA, st.permutations(["gateway", "port", "policy", "staging", "retry"]))
def test_the_order_of_the_words_makes_no_difference(
    documents: dict[str, str], words: list[str]
) -> None:
    index = index_of(documents)
    match, turned = index.query(" ".join(words)), index.query(" ".join(sorted(words)))
    assert match.scores.tobytes() == turned.scores.tobytes()
    assert match.coverage.tobytes() == turned.coverage.tobytes()


def test_finds_what_was_asked_for() -> None:
    index = index_of(DOCUMENTS)
    ids = list(index.ids)
    for query, best in [
        ("Which port does the staging gateway use?", "c3"),
        ("gateways", "b2"),
        ("policy controllers", "a1"),
        ("gateway.yaml", "c3"),
        ("err_404", "a1"),
        ("東京タワー", "d4"),
    ]:
        assert ids[int(np.argmax(index.query(query).scores))] == best
    nothing = index.query("the who?")
    assert nothing.scores.tolist() == nothing.coverage.tolist() == [0.0] * len(ids)


def test_repeated_frequencies_past_a_byte_are_kept(tmp_path: Path) -> None:
    documents = {"many": "gateway " * 70_000, "some": "gateway " * 300 + "port"}
    index = index_of(documents)
    index.save(str(tmp_path / "lexical"))
    assert_same(LexicalIndex.load(str(tmp_path / "lexical")), documents, ["gateway port"])


def test_the_snapshot_does_not_depend_on_its_history(tmp_path: Path) -> None:
    documents = {f"id {n * 37 % 400}": f"gateway {n % 7} port {n}" for n in range(400)}
    index_of(dict(sorted(documents.items()))).save(str(tmp_path / "sorted"))
    index = index_of({**documents, "passing": "policy"})
    index.save(str(tmp_path / "detour"))
    index = index.updated([], ["passing", *list(documents)[:50]])
    index = index.updated(list(documents.items())[:50])
    index.save(str(tmp_path / "way"))
    assert read_files(tmp_path / "way") == read_files(tmp_path / "sorted")


@pytest.mark.filterwarnings("error")
def test_an_empty_index_answers(tmp_path: Path) -> None:
    index = LexicalIndex()
    assert index.query("gateway").scores.shape == (0,)
    index.save(str(tmp_path / "lexical"))
    assert_same(LexicalIndex.load(str(tmp_path / "lexical")), {}, ["gateway"])
    index = index.updated([("a", "gateway")]).updated([], ["a"])
    assert index.query("gateway").coverage.shape == (0,)


def test_an_id_is_added_once_and_removed_once() -> None:
    index = index_of(DOCUMENTS)
    with pytest.raises(ValueError, match="'a1'"):
        index.updated([("new", "text"), ("a1", "other text")])
    with pytest.raises(KeyError, match="absent"):
        index.updated([], ["a1", "absent"])
    assert_same(index, DOCUMENTS, ["policy"])


def test_the_fingerprint_is_of_the_set_of_ids(tmp_path: Path) -> None:
    assert fingerprint(["a", "b"]) == fingerprint(iter(["b", "a"]))
    assert len({fingerprint(ids) for ids in ([], ["a"], ["ab"], ["a", "b"], ['a", "b'])}) == 5
    index_of(DOCUMENTS).save(str(tmp_path / "lexical"))
    manifest = json.loads((tmp_path / "lexical" / "manifest.json").read_bytes())
    assert manifest["fingerprint"] == fingerprint(DOCUMENTS)


def test_a_snapshot_is_private_and_mapped(tmp_path: Path) -> None:
    directory = tmp_path / "lexical"
    index_of(DOCUMENTS).save(str(directory))
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()} == {0o600}
    index = LexicalIndex.load(str(directory))
    assert isinstance(index._postings.arrays["slots"].base, np.memmap)


# What must not be trusted


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    directory = tmp_path / "lexical"
    index_of(DOCUMENTS).save(str(directory))
    LexicalIndex.load(str(directory))
    return directory


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def flip_a_bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) * 2 // 3] ^= 1
    path.write_bytes(data)


FILES = ["manifest.json", *lexical._FILES]


@pytest.mark.parametrize("damage", [truncate, empty, flip_a_bit, Path.unlink])
@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_is_noticed(
    snapshot: Path, name: str, damage: Callable[[Path], None]
) -> None:
    assert {path.name for path in snapshot.iterdir()} == set(FILES)
    damage(snapshot / name)
    noticed = "files are damaged" if damage in (truncate, flip_a_bit) and name != "manifest.json" else ""
    with pytest.raises(StaleSnapshotError, match=rf"{noticed}.*rebuild") as caught:
        LexicalIndex.load(str(snapshot))
    assert isinstance(caught.value, IndexStoreError)
    assert "\n" not in str(caught.value)


def test_a_file_of_another_snapshot_is_noticed(snapshot: Path, tmp_path: Path) -> None:
    index_of({**DOCUMENTS, "a1": "Other text."}).save(str(tmp_path / "other"))
    shutil.copy(tmp_path / "other" / "terms.npy", snapshot / "terms.npy")
    with pytest.raises(StaleSnapshotError):
        LexicalIndex.load(str(snapshot))


@pytest.mark.parametrize("content", [b"[]", b"{}", b"null", b'{"checksums": {}}', b"\xff", b"{"])
def test_a_foreign_manifest_is_noticed(snapshot: Path, content: bytes) -> None:
    (snapshot / "manifest.json").write_bytes(content)
    with pytest.raises(StaleSnapshotError):
        LexicalIndex.load(str(snapshot))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("format", 0),
        ("tokenizer", "memkit 0"),
        ("bm25", {"k1": 1.2, "b": 0.75, "delta": 1}),
        ("documents", 4),
        ("terms", 1),
        ("postings", 1),
        ("fingerprint", fingerprint(["other"])),
    ],
)
def test_a_manifest_must_fit(snapshot: Path, key: str, value: object) -> None:
    path = snapshot / "manifest.json"
    manifest = json.loads(path.read_bytes())
    assert manifest[key] != value
    path.write_text(json.dumps({**manifest, key: value}))
    with pytest.raises(StaleSnapshotError, match="version"):
        LexicalIndex.load(str(snapshot))


def test_a_snapshot_of_another_tokenizer_is_stale(
    snapshot: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(StaleSnapshotError):
        LexicalIndex.load(str(snapshot), language="german")
    monkeypatch.setattr(tokens, "VERSION", tokens.VERSION + 1)
    with pytest.raises(StaleSnapshotError):
        LexicalIndex.load(str(snapshot))


def test_a_missing_snapshot_is_stale(tmp_path: Path) -> None:
    with pytest.raises(StaleSnapshotError):
        LexicalIndex.load(str(tmp_path / "nowhere"))
    with pytest.raises(StaleSnapshotError):
        LexicalIndex.load(str(tmp_path))


def test_pickled_arrays_are_refused(snapshot: Path) -> None:
    path = snapshot / "slots.npy"
    np.save(path, np.array([{}], dtype=object), allow_pickle=True)
    manifest = json.loads((snapshot / "manifest.json").read_bytes())
    manifest["checksums"]["slots.npy"] = zlib.crc32(path.read_bytes())
    (snapshot / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(StaleSnapshotError):
        LexicalIndex.load(str(snapshot))
