"""A reload's report about a changed setting is true: it counts at once, or only from the next start on."""

from pathlib import Path

import pytest

from gateway.adapters.shared.folder import load_settings_schema
from gateway.config.loading import load_configuration
from gateway.config.reference import list_differences
from gateway.daemon.reload import apply_configuration
from gateway.testing import GatewayProcess, gateway_in
from tests.config.sources import right

AT_ONCE = """
journal: {retention: 30d}
platforms: {discord: {allowed_roles: ['12'], home_channel: '5', home_channel_name: us, typing: false, progress: all}}
display: {reactions: true, progress: tools}
sessions: {busy: interrupt}
access: {rate: 3}
hooks: {enabled: [timing]}
"""
LATER = """
journal: {max_size: 3GB}
platforms: {discord: {auto_thread: false, streaming: 'off'}}
sessions: {reset: idle, too_old: 1h}
hooks: {eager: 1}
logs: {keep: 1}
"""


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (AT_ONCE, []),
        (
            LATER,
            [
                "hooks.eager",
                "platforms.discord.streaming",
                "platforms.discord.auto_thread",
                "sessions.reset",
                "sessions.too_old",
                "journal.max_size",
                "logs.keep",
            ],
        ),
    ],
)
def test_what_wants_a_restart_is_named(tmp_path: Path, text: str, names: list[str]) -> None:
    files = GatewayProcess(tmp_path / "home")
    files.configure("")
    before = right(files.home).settings
    assert list(list_differences(before, right(files.home, text).settings, at_restart=True)) == names


async def test_what_counts_at_once_does(tmp_path: Path) -> None:
    root = tmp_path / "home"
    async with gateway_in(root) as live:
        files = GatewayProcess(root)
        files.configure(AT_ONCE)
        gateway = live.gateway
        configuration = load_configuration(load_settings_schema(), files.home, files.environ)
        await gateway.groups.bind(apply_configuration)(configuration)
        assert gateway.groups.storage.retention.limits().retention == 30 * 86_400
        assert gateway.access.rules.roles == {"discord": frozenset({"12"})}
        assert gateway.access.rules.rate == 3
        about = gateway.groups.turns.context.places.about()
        assert [one.home_channel for one in about.networks if one.name == "discord"] == ["5"]
