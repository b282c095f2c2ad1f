"""How far somebody is in a journal of one shard, and of several."""

from gateway.engine.journal_position import load_position

SHARDS = (0, 100, 200)


def test_one_shard_is_one_number() -> None:
    at = load_position((0,), 7)
    assert at.advance(9, 8).dump() == 9
    assert (at.has_reached(7), at.has_reached(8)) == (True, False)
    assert list(at.list_ranges()) == [(7, None)]


def test_a_shard_is_reached_without_the_others() -> None:
    at = load_position(SHARDS).advance(103, 2)
    assert [at.has_reached(seq) for seq in (2, 3, 103, 104, 201)] == [True, False, True, False, False]
    assert list(at.list_ranges()) == [(2, 100), (103, 200), (200, None)]
    assert (at.find_largest(), load_position(SHARDS).find_largest()) == (103, 0)


def test_never_goes_back() -> None:
    assert load_position(SHARDS).advance(103).advance(101).dump() == [0, 103, 200]


def test_is_what_was_stored() -> None:
    at = load_position(SHARDS).advance(5, 120, 207)
    assert load_position(SHARDS, at.dump()) == at
    assert load_position(SHARDS, 5).dump() == [5, 100, 200]  # stored where there was one shard
    assert load_position((*SHARDS, 300), [5, 120, 200]).dump() == [5, 120, 200, 300]
