"""`hermes-gateway security audit`: nothing is said of the default install, and each broken home by one check alone."""

import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import pytest

from gateway.cli.security import CHECKS, find_faults
from gateway.cli.security.target import AuditTarget, read_audit_target
from gateway.config.home import get_process_environment
from gateway.engine.interface import NewRecord
from gateway.engine.sqlite.engine import open_sqlite
from gateway.records import records, subjects
from gateway.records.records import PairingUser
from gateway.testing import GatewayProcess
from gateway.worker.sandbox import SandboxSupport
from tests.cli.test_terminal_safety import show_on_terminal

pytestmark = [pytest.mark.process, pytest.mark.row("T35")]

TOKEN = "1234567890:AAFakeFakeFakeFakeFakeFakeFakeFakeFak"
OWNER = "owners: {telegram: ['1001']}"
SIX = [f"telegram:{number}" for number in range(6)]
UNIT = "[Service]\nUser=gateway\nUMask=0077\nLimitCORE=0\nNoNewPrivileges=yes\n"
GUARD = "def handle(event_type, context):\n    return {'decision': 'deny', 'message': 'no'}\n"
PLUGIN = """
def register(ctx):
    ctx.register_hook("pre_tool_call", check)


def check(**given):
    return {"action": "block", "message": "no"}
"""
OWL = """
from gateway.adapters import PlatformSettings, PlatformSpec

SPEC = PlatformSpec(PlatformSettings, "such as O1", "O[0-9]+", "O[0-9]+", {})
"""
IS_ROOT = os.geteuid() == 0

# What breaks a home; what it gives back stands in for what the machine says.
Break: TypeAlias = Callable[[GatewayProcess], dict[str, Any] | None]


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.configure("")
        yield gateway


def saying(text: str) -> Break:
    """A home with this configuration."""
    return lambda gateway: gateway.configure(text)


def with_rights(mode: int, *names: str, is_folder: bool = False) -> Break:
    """A home in which these files or folders have such rights."""

    def break_it(gateway: GatewayProcess) -> None:
        for name in names:
            path = gateway.home.root / name
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.mkdir(mode=0o700, exist_ok=True) if is_folder else path.touch()
            path.chmod(mode)

    return break_it


def with_short_secret(gateway: GatewayProcess) -> None:
    gateway.configure("webhooks: {builds: {secret_env: BUILDS, verify: github}}\n")
    gateway.home.env.write_text("BUILDS=abacus77\n")
    gateway.home.env.chmod(0o600)


def with_text(name: str, text: str) -> Break:
    """A home that knows a token, and a file with this text in it."""

    def break_it(gateway: GatewayProcess) -> None:
        path = gateway.home.root / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o600)
        know_token(gateway)

    return break_it


def know_token(gateway: GatewayProcess) -> None:
    gateway.home.env.write_text(f"TELEGRAM_BOT_TOKEN={TOKEN}\n")
    gateway.home.env.chmod(0o600)


def with_hook(manifest: str, code: str = GUARD, configuration: str = "") -> Break:
    def break_it(gateway: GatewayProcess) -> None:
        gateway.configure(configuration)
        gateway.add_hook("guard", {"HOOK.yaml": manifest, "handler.py": code})

    return break_it


def with_hook_rights(change: Callable[[Path], object]) -> Break:
    def break_it(gateway: GatewayProcess) -> None:
        change(gateway.add_hook("quiet", {"HOOK.yaml": "events: [agent:end]\n", "handler.py": GUARD}))

    return break_it


def with_plugin(gateway: GatewayProcess) -> None:
    gateway.configure("hooks: {enabled: [judge], 'plugin:judge': {on_error: skip}}\n")
    folder = gateway.home.plugins / "judge"
    folder.mkdir(parents=True)
    (folder / "plugin.yaml").write_text("name: judge\nversion: '1'\n")
    (folder / "__init__.py").write_text(PLUGIN)


def with_unit(text: str) -> Break:
    def break_it(gateway: GatewayProcess) -> dict[str, Any]:
        know_token(gateway)
        unit = gateway.home.root.parent / "system" / "chat-gateway.service"
        unit.parent.mkdir()
        unit.write_text(text)
        return {"units": (unit,)}

    return break_it


def with_link(gateway: GatewayProcess) -> None:
    gateway.home.config.rename(gateway.home.root / "elsewhere")
    gateway.home.config.symlink_to(gateway.home.root / "elsewhere")


def with_code_elsewhere(folder: Path) -> None:
    (folder.parent.parent / "other.py").write_text(GUARD)
    (folder / "other.py").symlink_to(folder.parent.parent / "other.py")


def with_open_socket(gateway: GatewayProcess) -> None:
    gateway.start()
    gateway.home.own_folder.chmod(0o711)


def with_owls(change: Callable[[Path], object] = Path.exists, more: str = "") -> Break:
    """Make a home with a changed foreign adapter; `{place}` in `more` is its path."""

    def break_it(gateway: GatewayProcess) -> None:
        place = gateway.home.root.parent / "adapters"
        (place / "owl").mkdir(parents=True, mode=0o700)
        (place / "owl" / "settings.py").write_text(OWL)
        gateway.configure(f"adapters: {{dirs: ['{place}']}}\n{more.replace('{place}', str(place))}")
        change(place / "owl")

    return break_it


def with_port_key(gateway: GatewayProcess) -> None:
    key = gateway.home.root.parent / "port.key"
    key.touch(0o644)
    gateway.configure(f"web: {{tls: {{cert: '{key}', key: '{key}'}}}}\n")


BROKEN: dict[str, Break] = {
    "files.misshapen": with_link,
    "files.other-owner": lambda gateway: os.chown(gateway.home.config, 4242, -1),
    "files.home-writable": with_rights(0o770, ""),
    "files.settings-writable": with_rights(0o666, ".env"),
    "files.env-readable": with_rights(0o640, ".env"),
    "files.folder-readable": with_rights(0o755, "hermes-gateway"),
    "files.journal-readable": with_rights(0o644, "hermes-gateway/journal.db"),
    "files.logs-readable": with_rights(0o755, "hermes-gateway/logs", is_folder=True),
    "files.attachments-readable": with_rights(0o750, "hermes-gateway/files", is_folder=True),
    "files.backups-readable": with_rights(0o755, "hermes-gateway/backups", is_folder=True),
    "files.boot-writable": with_rights(0o666, "BOOT.md"),
    "files.skills-writable": with_rights(0o666, "skills/knots/SKILL.md"),
    "files.context-writable": with_rights(0o666, "hermes-gateway/workspace/AGENTS.md"),
    "files.hook-state-writable": with_rights(0o777, "hermes-gateway/hooks", is_folder=True),
    "sockets.control-open": with_open_socket,
    "hooks.other-owner": with_hook_rights(lambda folder: os.chown(folder / "handler.py", 4242, -1)),
    "hooks.writable": with_hook_rights(lambda folder: (folder / "handler.py").chmod(0o666)),
    "hooks.leads-out": with_hook_rights(with_code_elsewhere),
    "access.everybody": saying(f"access: {{everybody: [telegram], {OWNER}}}\n"),
    "access.open-chats": saying(f"access: {{chats: {{telegram: ['-100']}}, {OWNER}}}\n"),
    "access.network-roles": saying(
        f"access: {{{OWNER}}}\nplatforms: {{discord: {{allowed_roles: ['12345678901234567']}}}}\n"
    ),
    "access.guest-tools": saying("access: {tools: {guest: [web_fetch, send_message]}}\n"),
    "access.user-tools": saying("access: {tools: {user: all}}\n"),
    "access.user-commands": saying("access: {user_commands: [help, platform]}\n"),
    "access.common-owners": saying("access: {owners: {all: ['123456789012345']}}\n"),
    "access.inferred-owner": saying("access: {users: {telegram: ['1001']}}\n"),
    "access.no-approver": saying("access: {users: {telegram: ['1001', '1002']}}\n"),
    "config.accepted": saying("security: {accepted: [tools.shel-unasked]}\n"),
    "access.many-messages": saying("access: {rate: 6000}\n"),
    "access.idle-groups": saying(
        f"access: {{{OWNER}, groups: {{crowd: {{people: ['telegram:1001'], role: guest}}}}}}\n"
    ),
    "access.many-admins": saying(f"access: {{{OWNER}, groups: {{all: {{people: {SIX}, role: admin}}}}}}\n"),
    "hooks.missed-operators": with_hook(
        "intercepts: [message:received]\n",
        "def handle(event_type, context):\n    return 'deny' if context['scope'] == 'user' else None\n",
        f"access: {{{OWNER}, groups: {{ops: {{people: ['telegram:1'], role: operator}}}}}}\n",
    ),
    "web.wide-proxies": saying("web: {trusted_proxies: [10.0.0.0/8]}\n"),
    "web.plain-url": saying("web: {url: 'http://gateway.example'}\n"),
    "web.key-readable": with_port_key,
    "approvals.asker": saying("tools: {approvers: [owner, asker]}\n"),
    "tools.shell-unasked": saying("tools: {shell: allow}\n"),
    "tools.shell-allow": saying("tools: {shell_allow: [ls, {make: [test]}]}\n"),
    "access.local-proxy": saying("web: {identity: X-User, trusted_proxies: [127.0.0.1]}\n"),
    "tools.sandbox-off": saying("tools: {sandbox: {mode: 'off'}}\n"),
    "tools.sandbox-missing": lambda gateway: {"support": SandboxSupport(landlock=0, has_filter=True)},
    "tools.sandbox-sockets": saying("tools: {sandbox: {sockets: true}}\n"),
    "tools.keys-given": lambda gateway: gateway.configure(
        f"tools: {{sandbox: {{read: ['{gateway.home.root.parent}/.ssh/id']}}}}\n"
    ),
    "tools.wide-roots": saying("tools: {roots: [/]}\n"),
    "tools.inner-hosts": saying("tools: {fetch_hosts: [localhost]}\n"),
    "mcp.trust-all": saying("mcp_servers: {wiki: {command: wiki, trust: all}}\n"),
    "mcp.plain-http": saying("mcp_servers: {wiki: {url: 'http://wiki.example/mcp'}}\n"),
    "models.plain-http": saying("models: {far: {provider: openai, name: m, base_url: 'http://m.example/v1'}}\n"),
    "hooks.fail-open": with_hook("intercepts: [tool:before]\non_error: skip\n"),
    "plugins.fail-open": with_plugin,
    "hooks.granted": saying("hooks: {boot-md: {options: {may: [home], read: [/opt/app]}}}\n"),
    "hooks.in-process": with_hook("events: [agent:end]\n", configuration="hooks: {guard: {isolation: none}}\n"),
    "hooks.plain-http": with_hook("events: [agent:end]\nurl: http://hooks.example/\nsecret_env: KEY\n"),
    "hooks.unsigned": with_hook("events: [agent:end]\nurl: https://hooks.example/\n"),
    "hooks.tokens-given": with_hook("events: [agent:end]\nenv: [TELEGRAM_BOT_TOKEN]\n"),
    "adapters.other-owner": with_owls(lambda owl: os.chown(owl / "settings.py", 4242, -1)),
    "adapters.writable": with_owls(lambda owl: owl.parent.chmod(0o770)),
    "adapters.leads-out": with_owls(with_code_elsewhere),
    "adapters.in-reach": with_owls(more="tools: {sandbox: {write: ['{place}/owl']}}\n"),
    "adapters.in-process": with_owls(more="platforms: {owl: {enabled: true}}\n"),
    "secrets.in-config": with_text("hermes-gateway/config.yaml", f"agents: {{main: {{instructions: {TOKEN!r}}}}}\n"),
    "secrets.in-instructions": with_text("BOOT.md", f"Use {TOKEN}.\n"),
    "secrets.in-hooks": with_text("hooks/talker/handler.py", f"KEY = '{TOKEN}'\ndef handle(name, context): pass\n"),
    "secrets.in-unit": with_unit(f"{UNIT}Environment=KEY={TOKEN}\n"),
    "webhooks.short-secret": with_short_secret,
    "config.wrong": saying("tools: {shel: allow}\n"),
    "process.root": lambda gateway: {"uid": 0},
    "version.old": lambda gateway: {"facts": {"version": "0.0.1", "attention": []}},
    "version.python": lambda gateway: {"today": date(2040, 1, 1)},
    "unit.root": with_unit(UNIT.replace("User=gateway\n", "")),
    "unit.no-hardening": with_unit(UNIT.replace("NoNewPrivileges=yes\n", "")),
    "unit.core-dumps": with_unit(UNIT.replace("LimitCORE=0\n", "")),
    "unit.open-umask": with_unit(UNIT.replace("UMask=0077", "UMask=0022")),
}
NEED_ROOT = {"files.other-owner", "hooks.other-owner", "adapters.other-owner"}


def look_at(gateway: GatewayProcess, said: dict[str, Any]) -> AuditTarget:
    """The home as it is, on a machine of which nothing is to be said but what was `said`."""
    environ = {**get_process_environment(), **gateway.environ}
    target = read_audit_target(gateway.home, environ)
    doctor = replace(target.doctor, **{name: said.pop(name) for name in ("support", "facts") if name in said})
    return replace(target, **{"doctor": doctor, "uid": 1000, "units": (), **said})


def test_every_check_has_a_broken_home_and_an_id_of_its_own() -> None:
    assert [check.id for check in CHECKS] == list(dict.fromkeys(check.id for check in CHECKS))
    assert {check.id for check in CHECKS} == set(BROKEN)


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_home_is_found_by_one_check_alone(gateway: GatewayProcess, name: str) -> None:
    if name in NEED_ROOT and not IS_ROOT:
        pytest.skip("only root can give a file to somebody else")
    assert {check.id for check, _ in find_faults(look_at(gateway, {}))} == set()
    said = BROKEN[name](gateway) or {}
    found = [*find_faults(look_at(gateway, said))]
    assert {check.id for check, _ in found} == {name}, found
    assert all(fault.what and fault.remedy and str(fault.place) for _, fault in found)
    assert TOKEN not in str(found)


def audited(gateway: GatewayProcess, *options: str) -> tuple[int, set[str]]:
    """The exit code, and what was found."""
    done = gateway.cli("security", "audit", "--json", *options)
    told = json.loads(done.stdout)
    assert (told["schema_version"], told["checks"], done.returncode) == (1, len(CHECKS), int(bool(told["findings"])))
    assert [one["id"] for one in told["notices"]] == ["process.root"] * IS_ROOT
    return done.returncode, {one["id"] for one in told["findings"]}


def test_it_is_silent_on_the_default_install(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        assert audited(gateway) == (0, set())
        gateway.start()
        gateway.say("hello")
        assert audited(gateway) == (0, set())
        gateway.stop()
        assert audited(gateway) == (0, set())
        said = gateway.cli("security", "audit").stdout
        assert said.startswith(f"nothing found: {len(CHECKS)} checks\n")
        assert ("to know: the gateway runs as root" in said) is IS_ROOT


def test_fix_mends_rights_and_nothing_else(gateway: GatewayProcess) -> None:
    with_hook_rights(lambda folder: (folder / "handler.py").chmod(0o666))(gateway)
    with_owls(lambda owl: (owl / "settings.py").chmod(0o666), "tools: {shell: allow}\n")(gateway)
    with_rights(0o644, ".env")(gateway)
    with_rights(0o777, "skills", is_folder=True)(gateway)
    rights = {"files.env-readable", "files.skills-writable", "hooks.writable", "adapters.writable"}
    assert audited(gateway) == (1, {*rights, "tools.shell-unasked"})
    assert audited(gateway, "--fix") == (1, {"tools.shell-unasked"})
    assert gateway.home.env.stat().st_mode & 0o777 == 0o600
    assert gateway.home.skills.stat().st_mode & 0o777 == 0o755
    assert gateway.home.config.read_text().endswith("tools: {shell: allow}\n")
    said = gateway.cli("security", "audit").stdout
    assert "tools.shell-unasked" in said
    assert "tools: {shell: ask}" in said


def test_what_somebody_means_so_is_no_finding_any_more(gateway: GatewayProcess) -> None:
    settings = "tools: {shell: allow, sandbox: {sockets: true}}\n"
    gateway.configure(settings)
    assert audited(gateway) == (1, {"tools.shell-unasked", "tools.sandbox-sockets"})
    gateway.configure(f"{settings}security: {{accepted: [tools.shell-unasked, tools.sandbox-sockets]}}\n")
    assert audited(gateway) == (0, set())
    said = gateway.cli("security", "audit").stdout
    assert "accepted by security.accepted: tools.shell-unasked, tools.sandbox-sockets\n" in said
    told = json.loads(gateway.cli("security", "audit", "--json").stdout)
    assert [one["id"] for one in told["accepted"]] == ["tools.shell-unasked", "tools.sandbox-sockets"]


def test_it_knows_who_was_let_in_and_who_was_kept_as_the_owner(gateway: GatewayProcess) -> None:
    """Both stand in the journal, whether a gateway runs or not."""
    gateway.configure("access: {users: {telegram: ['1001']}}\n")
    gateway.start()
    gateway.configure("access: {users: {telegram: ['1001', '1002']}}\n")
    assert audited(gateway) == (1, {"access.inferred-owner"})
    gateway.stop()
    assert audited(gateway) == (1, {"access.inferred-owner"})
    gateway.configure("access: {users: {telegram: ['1002', '1003']}}\n")
    assert audited(gateway) == (1, {"access.no-approver"})


def keep_people(gateway: GatewayProcess, *people: PairingUser) -> None:
    async def write() -> None:
        async with await open_sqlite(gateway.home.journal) as engine:
            kept = records.PairingState(people=people, at=1.0)
            await engine.append(NewRecord(subjects.ACCESS_SUBJECT, records.encode(kept)))

    anyio.run(write)


def test_an_admin_who_was_let_in_by_a_code_may_approve(gateway: GatewayProcess) -> None:
    gateway.configure("")
    gateway.start()
    gateway.stop()
    gateway.configure("access: {users: {telegram: ['1002', '1003']}}\n")
    assert audited(gateway) == (1, {"access.no-approver"})
    keep_people(gateway, PairingUser("telegram", "1004", role="admin"))
    assert audited(gateway) == (0, set())


def test_nothing_that_is_printed_is_wider_than_a_terminal(gateway: GatewayProcess) -> None:
    gateway.configure(
        "access: {everybody: [telegram], rate: 6000, tools: {user: all, guest: all}}\n"
        "tools: {shell: allow, sandbox: {mode: 'off'}, approvers: [asker], roots: [/]}\n"
        "mcp_servers: {wiki: {url: 'http://wiki.example/mcp', trust: all}}\n"
    )
    with_hook_rights(lambda folder: (folder / "handler.py").chmod(0o666))(gateway)
    said = show_on_terminal(gateway, "security", "audit")
    assert "access.everybody" in said
    plain = re.sub(r"\x1b\[[0-9;]*m", "", said).splitlines()
    # a path that is as long as a line stays whole, to be copied
    assert [line for line in plain if len(line) > 80 and " " in line.strip()] == []


def test_it_never_runs_a_hook(gateway: GatewayProcess) -> None:
    trace = gateway.home.root / "ran"
    gateway.add_hook("canary", {"HOOK.yaml": "events: [agent:end]\n", "handler.py": f"open({str(trace)!r}, 'w')\n"})
    audited(gateway)
    assert not trace.exists()
