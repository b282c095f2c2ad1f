"""The meaning of `when`, and the rule of scopes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.hooks.filters import compile_filter, has_scope
from gateway.messages.roles import ROLES, Role, scope_of


@pytest.mark.parametrize(
    ("when", "fields", "applies"),
    [
        ({"platform": "telegram"}, {"platform": "telegram"}, True),
        ({"platform": "telegram"}, {"platform": "slack"}, False),
        ({"platform": "telegram"}, {}, False),
        ({"platform": ["telegram", "slack"]}, {"platform": "slack"}, True),
        ({"platform": []}, {"platform": "slack"}, False),
        ({"platform": "telegram", "chat_type": "dm"}, {"platform": "telegram", "chat_type": "group"}, False),
        ({"platform": "telegram", "chat_type": "dm"}, {"platform": "telegram", "chat_type": "dm"}, True),
        ({"chat_id": 123}, {"chat_id": "123"}, True),
        ({"chat_id": [123, 456]}, {"chat_id": "456"}, True),
        ({"chat_id": "123"}, {"chat_id": 123}, False),
        ({"hop": 0}, {"hop": 0}, True),
        ({"resumed": True}, {"resumed": True}, True),
        ({"resumed": True}, {"resumed": "True"}, False),
        ({"error": None}, {"error": None}, True),
        ({"error": None}, {}, False),
        ({"args": {"a": 1}}, {"args": {"a": 1}}, True),
    ],
)
def test_a_filter_asks_for_fields(when, fields, applies) -> None:
    matches = compile_filter(when)
    assert matches is not None
    assert matches(fields) is applies


@pytest.mark.parametrize("when", [None, {}])
def test_a_filter_that_asks_for_nothing_is_none(when) -> None:
    assert compile_filter(when) is None


def test_a_filter_is_a_mapping() -> None:
    with pytest.raises(TypeError, match="when= is a mapping of fields to values, not str"):
        compile_filter("platform: telegram")  # type: ignore[arg-type]


@pytest.mark.row("WEB-33")
@pytest.mark.row("WEB-34")
@pytest.mark.parametrize(
    ("wanted", "held_by"),
    [
        (["all"], ["nobody", "all", "guest", "user", "operator", "admin", "owner", "group:x", "group:y", "payer"]),
        ([], ["nobody", "all", "guest", "user", "operator", "admin", "owner", "group:x", "group:y", "payer"]),
        (["guest"], ["guest", "user", "operator", "admin", "owner"]),
        (["user"], ["guest", "user", "operator", "admin", "owner"]),
        (["operator"], ["operator", "admin", "owner"]),
        (["admin"], ["admin", "owner"]),
        (["owner"], ["admin", "owner"]),
        (["group:x"], ["admin", "owner", "group:x"]),
        (["payer"], ["payer"]),
        (["unheard of"], []),
        (["admin", "payer"], ["admin", "owner", "payer"]),
        (["user", "group:y"], ["guest", "user", "operator", "admin", "owner", "group:y"]),
    ],
)
def test_who_may_more_may_less_too_and_an_unknown_scope_is_met_by_its_holder_alone(wanted, held_by) -> None:
    everyone = {
        "nobody": None,
        "all": "all",
        "guest": "guest",
        "user": "user",
        "operator": "operator",
        "admin": "admin",
        "owner": "owner",
        "group:x": "group:x",
        "group:y": ["group:y"],
        "payer": ["payer"],
    }
    assert [who for who, held in everyone.items() if has_scope(held, wanted)] == held_by


def test_a_scope_in_a_filter_follows_that_rule() -> None:
    matches = compile_filter({"scope": "admin", "platform": "slack"})
    assert matches is not None
    assert matches({"scope": "owner", "platform": "slack"})
    assert not matches({"scope": "user", "platform": "slack"})
    assert not matches({"platform": "slack"})
    assert not matches({"scope": "owner", "platform": "web"})


COVERED = {  # by word, whom a hook with `when: {scope: WORD}` meets
    "all": ["guest", "user", "operator", "admin", "owner"],
    "guest": ["guest", "user", "operator", "admin", "owner"],
    "user": ["guest", "user", "operator", "admin", "owner"],
    "operator": ["operator", "admin", "owner"],
    "admin": ["admin", "owner"],
    "owner": ["admin", "owner"],
}
COVERED_BEFORE = {  # when there were three words
    "all": ["guest", "user", "operator", "admin", "owner"],
    "user": ["guest", "user", "operator", "admin", "owner"],
    "admin": ["admin", "owner"],
    "owner": ["owner"],
}


@pytest.mark.parametrize("word", COVERED)
@pytest.mark.parametrize("role", ROLES)
def test_whom_a_word_meets_by_the_role_or_by_the_scope_that_an_event_says(word: str, role: Role) -> None:
    matches = compile_filter({"scope": word})
    assert matches is not None
    told = ({"role": role, "scope": scope_of(role)}, {"role": role}, {"scope": scope_of(role)})
    assert [matches(event) for event in told] == [role in COVERED[word]] * 3


def test_no_guard_covers_fewer_than_before_and_none_of_those_below_escapes() -> None:
    assert set(COVERED) == {"all", *ROLES}
    assert all(set(before) <= set(COVERED[word]) for word, before in COVERED_BEFORE.items())
    for met in COVERED.values():
        assert met == list(reversed(ROLES))[-len(met) :]


@pytest.mark.parametrize(
    ("when", "met"),
    [
        ({"scope": "user"}, ["guest", "user", "operator", "admin", "owner"]),
        ({"scope": "operator"}, ["operator", "admin", "owner"]),
        ({"role": "user"}, ["guest", "user"]),
        ({"role": "guest"}, ["guest"]),
        ({"role": ["operator", "admin"]}, ["operator", "admin"]),
    ],
)
def test_a_filter_that_says_user_meets_guests_too(when, met) -> None:
    matches = compile_filter(when)
    assert matches is not None
    events = [{"role": role, "scope": scope_of(role)} for role in reversed(ROLES)]
    assert [event["role"] for event in events if matches(event)] == met


@given(
    st.sets(st.sampled_from(["all", "guest", "user", "owner", "admin", "group:x", "payer"])),
    st.lists(st.text(max_size=3)),
)
def test_to_hold_more_never_allows_less(held, wanted) -> None:
    if has_scope(held, wanted):
        assert has_scope(held | {"admin"}, wanted)
