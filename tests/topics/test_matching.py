"""Clusters get the ids of earlier topics by the members that they share."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memkit.topics.topic_store import Change, match

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


def test_splits_and_merges() -> None:
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


def test_what_disappeared_is_recorded_and_an_id_in_use_not_given_again() -> None:
    earlier = named([frozenset("abcdefgh")])
    (name,) = earlier
    assert match([frozenset("xyz")], earlier).changes == [Change("gone", name)]
    assert match([frozenset("axyz")], earlier).ids != [name]  # its first member would give this id
