"""Topics of a memory: what is grouped, named, and carried over from one time to the next."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memkit.errors import AmbiguousIdError, DamagedFileError, NewerFileError, NotFoundError
from memkit.topics import clusters, compute
from memkit.topics.clusters import count_points, read_points
from memkit.topics.compute import refresh
from memkit.topics.files import StoredTopics, derived_path, read_derived
from memkit.topics.labels import (
    LABEL_CHARACTERS,
    MADE_CHARACTERS,
    TopicWords,
    clean,
    labels_of,
    words_of_topics,
)
from memkit.topics.topic_list import TopicList, read_topics, rename
from memkit.topics.topic_store import Change, changing_kept, match, read_kept
from tests.memory import Memory, day, make_memory
from tests.topics.subjects import SUBJECTS, days, make_subjects

TODAY = date(2026, 5, 20)


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return make_subjects(tmp_path)


@pytest.fixture(scope="module")
def computed(tmp_path_factory: pytest.TempPathFactory) -> Memory:
    """A memory with its topics. Not to be changed."""
    memory = make_subjects(tmp_path_factory.mktemp("computed"))
    run(memory)
    return memory


def run(memory: Memory) -> StoredTopics:
    found = refresh(memory.project, memory.home, memory.settings)
    assert found is not None
    return found


def shown_topics(memory: Memory, today: date = TODAY) -> TopicList:
    found = read_topics(memory.project, memory.home, memory.settings, today)
    assert found is not None
    return found


def subjects_of(memory: Memory) -> dict[str, str]:
    """The subject of each topic, by id; fails if a topic mixes subjects."""
    snapshot = memory.snapshot
    points = read_points(snapshot)
    texts = {
        key: snapshot.chunk(n).content for key, n in zip(points.keys, points.first_chunks.tolist(), strict=True)
    }
    found = {}
    for name, one in read_kept(memory.home, memory.project).topics.items():
        about = {subject for key in one.members for subject in SUBJECTS if f"The {subject} has" in texts[key]}
        (found[name],) = about
    return found


def test_each_subject_is_a_topic_with_its_words(computed: Memory) -> None:
    found = shown_topics(computed).stored
    assert sorted(subjects_of(computed).values()) == sorted(SUBJECTS)
    assert found.entries == 24 == count_points(computed.snapshot)
    assert found.noise == found.entries - sum(one.size for one in found.topics)
    for one in found.topics:
        subject = subjects_of(computed)[one.id]
        assert set(one.words) <= {*SUBJECTS[subject].split(), "order"}
        assert one.label.startswith("The ") and one.words[0] in SUBJECTS[subject].split()
        assert sum(one.days.values()) == one.size
        month = 3 + list(SUBJECTS).index(subject)
        assert all(day.startswith(f"2026-{month:02d}-") for day in one.days)
        assert 0 < len(one.entries) <= one.size
        assert subject in computed.snapshot.chunk(computed.snapshot.find(one.entries[0])).content


def test_ids_labels_and_members_survive_a_refresh(memory: Memory) -> None:
    before = run(memory)
    name = before.topics[0].id
    rename(memory.project, memory.home, name, "My subject")
    for path, text in days(4, first=8).items():
        memory.write(path, text)
    memory.sync()
    after = run(memory)
    assert {one.id for one in after.topics} == {one.id for one in before.topics}
    assert after.entries == 36
    shown = shown_topics(memory)
    assert (shown.find(name).label, shown.find(name).is_named) == ("My subject", True)
    assert after.topics[0].label != "My subject"  # the file that can be derived has made ones only
    rename(memory.project, memory.home, name, "")
    assert not shown_topics(memory).find(name).is_named


def test_files_can_be_deleted(memory: Memory) -> None:
    """Without any, IDs are made from the members again."""
    before = run(memory)
    path = derived_path(memory.project, memory.home, memory.settings)
    path.unlink()
    assert read_topics(memory.project, memory.home, memory.settings, TODAY) is None
    assert run(memory).topics == before.topics
    for kept in Path(memory.home.projects).glob("*.topics.json"):
        kept.unlink()
    assert [one.id for one in run(memory).topics] == [one.id for one in before.topics]


def test_a_topic_that_disappears_keeps_its_label_for_its_return(memory: Memory) -> None:
    run(memory)
    name = next(one for one, subject in subjects_of(memory).items() if subject == "garden")
    rename(memory.project, memory.home, name, "Vegetables")
    texts = {path: memory.path(path).read_text() for path in days(8) if path.startswith("2026-05")}
    for path in texts:
        memory.path(path).unlink()
    memory.sync()
    run(memory)
    shown = shown_topics(memory)
    with pytest.raises(NotFoundError, match=rf"{name} disappeared on \d{{4}}-"):
        shown.find(name)
    changes = len(shown.kept.changes)
    run(memory)
    assert len(read_kept(memory.home, memory.project).changes) == changes  # said once
    for path, text in texts.items():
        memory.write(path, text)
    memory.sync()
    run(memory)
    shown = shown_topics(memory)
    assert shown.find(name).label == "Vegetables"


def test_a_sample_stands_for_a_large_memory_and_a_label_given_meanwhile_is_kept(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clusters, "MOST_POINTS", 15)
    found = run(memory)
    assert sorted(subjects_of(memory).values()) == sorted(SUBJECTS)
    assert sum(one.size for one in found.topics) > 15  # others joined
    name = found.topics[0].id

    def rename_meanwhile(words: list[TopicWords]) -> list[str]:
        rename(memory.project, memory.home, name, "Meanwhile")
        return labels_of(words)

    monkeypatch.setattr(compute, "labels_of", rename_meanwhile)
    run(memory)
    assert read_kept(memory.home, memory.project).topics[name].label == "Meanwhile"


def test_few_or_equal_entries(tmp_path: Path) -> None:
    few = make_subjects(tmp_path / "few", turns=1)
    assert run(few).topics == ()
    assert run(few).noise == 3
    none = make_subjects(tmp_path / "none", turns=0)
    assert run(none).entries == 0
    same = np.ones((42, 4), np.float32) / 2
    points = read_points(make_subjects(tmp_path / "same", turns=14).snapshot)
    assert set(clusters.group(same, points).tolist()) <= {-1, 0, 1, 2}


def test_the_list_of_topics(computed: Memory) -> None:
    shown = shown_topics(computed)
    subjects = subjects_of(computed)
    assert subjects[shown.topics[0].id] == "garden"  # the latest; all have one size
    for one in shown.topics:
        assert 0 <= one.recency <= 1 and 0 < one.size_score <= 1 and 0 <= one.stored.centrality <= 1
        parts = 0.4 * one.size_score + 0.4 * one.recency + 0.2 * one.stored.centrality
        assert one.importance == pytest.approx(parts)
        assert sum(one.weeks.values()) == one.stored.size
    garden = shown.topics[0]
    later = shown_topics(computed, date(2026, 6, 19))
    assert later.find(garden.id).recency == pytest.approx(garden.recency / 2)  # 30 days
    assert garden.weeks.keys() <= {"2026-W18"}
    shown = shown_topics(computed)
    by_name = {subject: one for one, subject in subjects_of(computed).items()}
    key = next(iter(shown.kept.topics[by_name["billing"]].members))
    other = next(iter(shown.kept.topics[by_name["garden"]].members))
    found = shown.holding([((key,), 0.9), ((other, "unknown"), 0.5)])
    assert [(one.id, score) for one, score in found] == [(by_name["billing"], 0.9), (by_name["garden"], 0.5)]
    shown = shown_topics(computed)
    name = shown.topics[0].id
    assert shown.find(name[:6].upper()).id == name
    for other in ("", "zzz"):
        with pytest.raises(NotFoundError):
            shown.find(other)
    twins = shown.__class__(shown.stored, shown.kept, (shown.topics[0], shown.topics[0]))
    with pytest.raises(AmbiguousIdError):
        twins.find(name[:1])


def test_files_of_a_newer_or_damaged_kind(memory: Memory) -> None:
    run(memory)
    derived = derived_path(memory.project, memory.home, memory.settings)
    (kept,) = Path(memory.home.projects).glob("*.topics.json")
    for text in ("[]", "{", '{"version": 1}', '{"version": 1, "topics": {"a": 1}}'):
        derived.write_text(text)
        assert read_derived(derived) is None
        saved = kept.read_bytes()
        kept.write_text(text)
        with pytest.raises(DamagedFileError), changing_kept(memory.home, memory.project):
            pass
        assert kept.read_text() == text  # the labels may be saved from it
        kept.write_bytes(saved)
    run(memory)
    value = json.loads(derived.read_bytes())
    value["topics"][0]["size"] = -5
    derived.write_text(json.dumps(value))
    assert read_derived(derived) is None
    value = json.loads(kept.read_bytes())
    kept.write_text(json.dumps({**value, "version": 2}))
    with pytest.raises(NewerFileError):
        run(memory)


def test_labels_are_short_and_printable() -> None:
    assert clean("a\x1b[31m b\n\n c\u202e d") == "a [31m b c d"
    assert len(clean("word " * 40)) <= LABEL_CHARACTERS
    words = ("gateway", "gateways", "port", "x" * 60, "proxy")
    title = "Move the staging gateway"
    found = labels_of([TopicWords(words, (title, "The port of nginx")), TopicWords(words, (title,))])
    assert found == ["Move the staging gateway · port, proxy", "gateway, port, proxy"]
    assert labels_of([TopicWords((), ())] * 2) == ["unnamed", "unnamed (2)"]
    (long,) = labels_of([TopicWords(("proxy", "u" * 24, "sea"), ("a port " * 10,))])
    assert len(long) <= MADE_CHARACTERS and long.endswith(" · proxy, sea")


def test_a_label_is_a_title_and_counts_no_lines_of_tools(tmp_path: Path) -> None:
    """What a session was asked for names its topic; what its tools printed does not."""
    asked = "Move the webhook queue to its own worker"
    others = ["go on", "and the webhook retries?", "does the queue of the webhook drain?"]
    turns = [(text, f"Done. The retries wait in part {number}.") for number, text in enumerate([asked, *others])]
    text = day("2026-03-01", *turns, session="5e550000").replace("\n**Answered**", "\n**Did** Ran `npx vitest`\n\n**Answered**")
    memory = make_memory(tmp_path, {"2026-03-01.md": text})
    memory.sync()
    points = read_points(memory.snapshot)
    (found,) = words_of_topics(memory.snapshot, points, [np.arange(len(points))], "english", {})
    assert found.titles[0] == asked and {*found.words[:2]} == {"webhook", "queue"}
    assert not {"npx", "vitest", "ran"} & set(found.words)


# Clusters get the IDs of earlier topics by the members that they share


members = st.integers(0, 60).map(lambda number: f"m{number:02d}")


@st.composite
def partitions(draw: st.DrawFn) -> list[frozenset[str]]:
    """Disjoint clusters of three or more members."""
    labels = draw(st.dictionaries(members, st.integers(0, 6), max_size=50))
    groups: dict[int, set[str]] = {}
    for member, label in labels.items():
        groups.setdefault(label, set()).add(member)
    return [frozenset(group) for group in groups.values() if len(group) >= 3]


def named(clusters: list[frozenset[str]]) -> dict[str, frozenset[str]]:
    return dict(zip(match(clusters, {}).ids, clusters, strict=True))


@given(partitions())
def test_the_same_clusters_keep_their_ids(clusters: list[frozenset[str]]) -> None:
    earlier = named(clusters)
    found = match(clusters, earlier)
    assert found.ids == list(earlier)
    assert found.changes == []


@given(partitions(), partitions(), st.randoms())
def test_ids_are_unique_and_do_not_depend_on_the_order(
    before: list[frozenset[str]], after: list[frozenset[str]], random: object
) -> None:
    earlier = named(before)
    labeled = list(earlier)[:1]
    found = dict(zip(after, match(after, earlier, labeled).ids, strict=True))
    assert len(set(found.values())) == len(after)
    shuffled = [*after]
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    turned = dict(reversed(earlier.items()))
    assert dict(zip(shuffled, match(shuffled, turned, labeled).ids, strict=True)) == found


@given(partitions(), partitions())
def test_an_id_stands_for_shared_members_and_every_lost_one_is_recorded(
    before: list[frozenset[str]], after: list[frozenset[str]]
) -> None:
    earlier = named(before)
    found = match(after, earlier)
    for name, cluster in zip(found.ids, after, strict=True):
        if name in earlier:
            shared = len(earlier[name] & cluster)
            assert 2 * shared >= min(len(earlier[name]), len(cluster)) > 0
    changed = [one.id for one in found.changes]
    assert len(changed) == len(set(changed))
    assert set(earlier) - set(found.ids) <= set(changed)
    for one in found.changes:
        assert set(one.into) <= set(found.ids)
        assert bool(one.into) == (one.kind != "gone")


@given(partitions(), st.lists(st.integers(100, 200), unique=True, max_size=20))
def test_new_members_change_no_id(clusters: list[frozenset[str]], new: list[int]) -> None:
    earlier = named(clusters)
    grown = [cluster | {f"m{n}" for n in new[place :: len(clusters)]} for place, cluster in enumerate(clusters)]
    assert match(grown, earlier).ids == list(earlier)


def test_splits_merges_and_what_disappears() -> None:
    whole = {"t0000000": frozenset("abcdefgh")}
    found = match([frozenset("abc"), frozenset("defgh")], whole)
    assert found.ids[1] == "t0000000" != found.ids[0]  # the larger part keeps the ID
    assert found.changes == [Change("split", "t0000000", tuple(sorted(found.ids)))]
    assert found.changes[0].words == f"was split into {', '.join(sorted(found.ids))}"
    earlier = {"small000": frozenset("abc"), "large000": frozenset("defgh")}
    found = match([frozenset("abcdefgh")], earlier)
    assert found.ids == ["large000"]
    assert found.changes == [Change("merged", "small000", ("large000",))]
    # An own label decides where it is a good part.
    assert match([frozenset("abcdefgh")], earlier, {"small000"}).ids == ["small000"]
    large = {"small000": frozenset("abc"), "large000": frozenset("defghijklmnopqrstuvw")}
    assert match([frozenset("abcdefghijklmnopqrstuvw")], large, {"small000"}).ids == ["large000"]
    earlier = named([frozenset("abcdefgh")])
    (name,) = earlier
    assert match([frozenset("xyz")], earlier).changes == [Change("gone", name)]
    assert match([frozenset("axyz")], earlier).ids != [name]  # its first member would give this id
