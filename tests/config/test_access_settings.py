"""The people who may use the gateway: by default none, and only ids count."""

from typing import Any

import pytest

from gateway.config.home import Home
from gateway.daemon.part_settings import access_rules_from
from tests.config.sources import SCHEMA, right, said


@pytest.mark.row("T16")
def test_nobody_may_speak_by_default() -> None:
    access = SCHEMA.settings().access
    assert access.everybody == ()
    assert not any(
        getattr(ids, network) for ids in (access.users, access.admins, access.owners) for network in ("all",)
    )


@pytest.mark.row("T16")
@pytest.mark.parametrize(
    ("network", "good", "bad"),
    [
        ("telegram", ["12345"], ["@alice", "alice", "-5", "12 34", "*", "٣"]),
        (
            "discord",
            ["123456789012345678", "123456789012345678901"],
            ["alice", "alice#1234", "1234", "<@123456789012345678>", "1" * 22],
        ),
        ("slack", ["U012ABCDEF", "W012ABCDEF"], ["alice", "u012abcdef", "@U012ABCDEF"]),
    ],
)
def test_names_are_refused_in_our_file(home: Home, network: str, good: list[str], bad: list[str]) -> None:
    right(home, f"access: {{users: {{{network}: {good}}}}}")
    for name in bad:
        (line,) = said(home, f"access: {{users: {{{network}: ['{good[0]}', '{name}']}}}}")
        assert f"error: entry 2 of `access.users.{network}` is not an id; write the id that never changes" in line


@pytest.mark.row("T16")
def test_names_in_hermess_variables_let_nobody_in(home: Home) -> None:
    got = right(home, "", "TELEGRAM_ALLOWED_USERS=@alice,77\n")
    users: Any = got.settings.access.users
    assert users.telegram == ("77",)
    assert [finding.severity for finding in got.warnings] == ["warning"]


def test_ids_for_all_networks_count_on_each(home: Home) -> None:
    got: Any = right(
        home, "access: {users: {telegram: [1]}}", GATEWAY_ALLOWED_USERS="2,U012ABCDEF"
    ).settings.access.users
    assert got.telegram == ("1", "2", "U012ABCDEF")
    assert got.slack == ("2", "U012ABCDEF")


def test_a_group_lets_people_in_with_a_role_and_a_pace(home: Home) -> None:
    ops_line = "ops: {people: [telegram:1, slack:U012ABCDEF], role: operator, rate: 9}"
    text = f"access:\n  rate: {{user: 5, guest: 1}}\n  groups:\n    {ops_line}\n"
    access = right(home, text).settings.access
    ops = access.groups["ops"]
    assert (ops.people, ops.role, ops.rate) == (("telegram:1", "slack:U012ABCDEF"), "operator", 9)
    assert access.rate == {"user": 5, "guest": 1}
    rules = access_rules_from(right(home, text))
    assert rules.groups_of("telegram:1") == ("ops",)
    assert rules.groups_of("telegram:2") == rules.groups_of("discord:1") == ()
    assert [rules.find_rate("telegram:1", "operator"), rules.find_rate("telegram:2", "user")] == [9, 5]
    assert [rules.find_rate("telegram:2", role) for role in ("admin", "guest")] == [30, 1]
    assert access_rules_from(right(home, "access: {rate: 7}")).find_rate("telegram:2", "guest") == 7


@pytest.mark.row("T16")
@pytest.mark.parametrize(
    ("people", "column", "wrong"),
    [
        ("['telegram:1', '1002']", 32, "entry 2 of `access.groups.a.people` does not begin with a network"),
        ("['@ann']", 18, "entry 1 of `access.groups.a.people` does not begin with a network"),
        ("['matrix:1']", 18, "entry 1 of `access.groups.a.people` does not begin with a network"),
        ("['telegram:ann']", 18, "entry 1 of `access.groups.a.people` is not an id; write the id that never changes"),
        ("['telegram:@ann']", 18, "entry 1 of `access.groups.a.people` is not an id"),
        ("['telegram:*']", 18, "entry 1 of `access.groups.a.people` is not an id"),
        ("['discord:ann#1234']", 18, "entry 1 of `access.groups.a.people` is not an id"),
        ("['telegram:1', 'telegram:1']", 32, "entry 2 of `access.groups.a.people` is in a group before"),
    ],
)
def test_a_group_names_people_by_ids_of_a_network(home: Home, people: str, column: int, wrong: str) -> None:
    (line,) = said(home, f"access:\n  groups:\n    a: {{people: {people}}}\n")
    assert line.startswith(f"config.yaml:3:{column}: error: {wrong}")


def test_nobody_is_in_two_groups_and_a_group_has_a_role_that_there_is(home: Home) -> None:
    (line,) = said(home, "access:\n  groups:\n    a: {people: ['telegram:1']}\n    b: {people: ['telegram:1']}\n")
    assert "config.yaml:4:18: error: entry 1 of `access.groups.b.people` is in a group before" in line
    assert "leave them in one; they are in `a` already" in line
    for role in ("chief", "owner"):
        (line,) = said(home, f"access:\n  groups:\n    a: {{people: [], role: {role}}}\n")
        assert "config.yaml:3:27: error: `access.groups.a.role`" in line
        assert "`admin` or `guest` or `operator` or `user`" in line
    (line,) = said(home, "access:\n  rate: {chief: 3}\n")
    assert "config.yaml:2:" in line


@pytest.mark.parametrize("variable", SCHEMA.allow_all_variables)
def test_opening_a_network_is_done_and_warned_about(home: Home, variable: str) -> None:
    got = right(home, **{variable: "true"})
    assert got.settings.access.everybody == SCHEMA.allow_all_variables[variable]
    assert "may speak to the gateway" in str(got.warnings[0])
    assert right(home, **{variable: "false"}).settings.access.everybody == ()
    assert right(home, **{variable: "perhaps"}).settings.access.everybody == ()
