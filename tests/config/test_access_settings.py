"""Who may speak: by default nobody, and only ids count."""

from typing import Any

import pytest

from gateway.config.home import Home
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
        assert f"error: entry 2 of `access.users.{network}` is no id; write the id that never changes" in line


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


@pytest.mark.parametrize("variable", SCHEMA.allow_all_variables)
def test_opening_a_network_is_done_and_warned_about(home: Home, variable: str) -> None:
    got = right(home, **{variable: "true"})
    assert got.settings.access.everybody == SCHEMA.allow_all_variables[variable]
    assert "may speak to the gateway" in str(got.warnings[0])
    assert right(home, **{variable: "false"}).settings.access.everybody == ()
    assert right(home, **{variable: "perhaps"}).settings.access.everybody == ()
