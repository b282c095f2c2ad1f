"""Checks of hooks and plugins, and of secrets in readable places."""

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from gateway.cli.security.target import AuditFault, AuditTarget, make_check
from gateway.cli.security.tools import is_plain_http
from gateway.config.platform_settings import list_accounts
from gateway.config.secrets import MIN_LENGTH
from gateway.config.settings import PLUGIN_PREFIX, HookOverrides
from gateway.hooks.manifests.manifest import Manifest
from gateway.hooks.manifests.reach import TurnGrants, read_grants
from gateway.hooks.places.inspection import read_code
from gateway.hooks.places.installed_source import BUILT_IN_FOLDER
from gateway.hooks.places.sources import HookVersion
from gateway.yaml_source.tree import SourceLocation

GUARDED = ("tool:before", "tools:before")
DENIES = re.compile(rb"\bDeny\b|[\"'](deny|block)[\"']|\bexit 2\b")
ASKS_SCOPE = re.compile(rb"[\"']scope[\"'][^\n]{0,40}[\"']user[\"']|[\"']user[\"'][^\n]{0,40}[\"']scope[\"']")
MOST_BYTES = 1_000_000  # bytes of a file that are searched for secrets


def _list_hooks(target: AuditTarget) -> Iterator[tuple[HookVersion, Manifest, HookOverrides]]:
    """Yield the readable hooks, with the configuration's settings for each."""
    for version in target.hooks:
        if version.manifest:
            overrides = target.settings.hooks.find_overrides(version.name, version.short)
            yield version, version.manifest, overrides


def _find_open_guards(target: AuditTarget, prefix: str) -> Iterator[AuditFault]:
    """Find hooks or plugins that can deny a tool, and let it run when they fail."""
    for version, manifest, overrides in _list_hooks(target):
        is_meant = version.name.startswith(PLUGIN_PREFIX) == bool(prefix)
        is_closed = overrides.on_error == "deny" or (
            overrides.on_error is None and (manifest.on_error == "raise" or any(map(manifest.denies, GUARDED)))
        )
        if is_meant and not is_closed and set(manifest.intercepts) & set(GUARDED) and _can_deny(version, manifest):
            what = f"{version.called} can refuse a tool, and where it fails the tool runs"
            remedy = f"hooks: {{{version.called}: {{on_error: deny}}}}"
            yield AuditFault(SourceLocation(str(version.path)), what, remedy)


def _can_deny(version: HookVersion, manifest: Manifest) -> bool:
    try:
        code = read_code(version, manifest.command).files
    except OSError:
        return True
    return bool(manifest.url) or any(map(DENIES.search, code.values()))


@make_check("hooks.missed-operators", "warning", "operators are not stopped by this guard for users")
def _find_missed_operators(target: AuditTarget) -> Iterator[AuditFault]:
    """Find handlers that compare `scope` with `user`: before operators had their own word, that included them."""
    groups = target.settings.access.groups.values()
    roles = {one.role for one in target.people.people} | {one.role for one in groups}
    for version, manifest, _ in _list_hooks(target) if "operator" in roles else ():
        with suppress(OSError):
            files = read_code(version, manifest.command).files
            for name, code in files.items():
                if ASKS_SCOPE.search(code) and b"operator" not in code:
                    what = f"{version.called} compares `scope` with `user`, which no operator has any more"
                    remedy = "compare it with `operator` too, or ask by `when: {scope: user}`"
                    yield AuditFault(SourceLocation(str(version.path / name)), what, remedy)


@make_check("hooks.in-process", "warning", "it can read every token, and its errors affect the gateway")
def _find_in_process(target: AuditTarget) -> Iterator[AuditFault]:
    for version, _, overrides in _list_hooks(target):
        if overrides.isolation == "none":
            what = f"{version.called} runs inside the gateway"
            place = target.place_of(f"hooks.each.{version.called}.isolation")
            yield AuditFault(place, what, f"hooks: {{{version.called}: {{isolation: process}}}}")


@make_check("hooks.granted", "notice", "it does this without a question, also if BOOT.md has it do so unasked")
def _find_granted(target: AuditTarget) -> Iterator[AuditFault]:
    """Find what the owner has granted to the turns of built-in hooks."""
    replaced = {version.name for version in target.hooks}
    for name, overrides in target.settings.hooks.each.items():
        is_ours = name not in replaced and (BUILT_IN_FOLDER / name).is_dir()
        may, read = read_grants(overrides.options) if is_ours else TurnGrants()
        granted = [*(f"write to {one}" for one in may), *(f"read {one}" for one in read)]
        if granted:
            place = target.place_of(f"hooks.each.{name}.options")
            yield AuditFault(place, f"a turn of {name} may {', '.join(granted)}", "remove what it does not need")


@make_check("hooks.plain-http", "error", "anyone on the network path can read messages and decide")
def _find_plain_hooks(target: AuditTarget) -> Iterator[AuditFault]:
    for version, manifest, _ in _list_hooks(target):
        if is_plain_http(manifest.url):
            what = f"events go to {version.called} unencrypted, and its decisions come so"
            yield AuditFault(SourceLocation(str(version.path / "HOOK.yaml")), what, "write https:// in its `url`")


@make_check("hooks.unsigned", "warning", "anyone can send invented events to that address")
def _find_unsigned_hooks(target: AuditTarget) -> Iterator[AuditFault]:
    for version, manifest, _ in _list_hooks(target):
        if manifest.url.startswith("https:") and not manifest.secret_env:
            what = f"{version.called} cannot tell our events from anybody else's"
            remedy = "write `secret_env: NAME` into its HOOK.yaml, and NAME=... into .env"
            yield AuditFault(SourceLocation(str(version.path / "HOOK.yaml")), what, remedy)


@make_check("hooks.tokens-given", "warning", "a program with the token can act as the bot")
def _find_tokens_given(target: AuditTarget) -> Iterator[AuditFault]:
    """Find hooks that get the token of a network, with which anyone can act as the bot."""
    if target.doctor.configuration is None:
        return
    schema, known = target.doctor.configuration.schema, list_accounts(target.settings.platforms)
    tokens = {variable for one in known for _, variable in schema.list_platform_secrets(one.platform, one.account)}
    for version, manifest, overrides in _list_hooks(target):
        for name in sorted(tokens & {*manifest.env, *manifest.requires.env, *overrides.env}):
            what = f"{version.called} is given {name}"
            remedy = "take it out of its `env`, and have it say `uses: [send]` and call context.gateway.send"
            yield AuditFault(SourceLocation(str(version.path)), what, remedy)


def _find_secrets(target: AuditTarget, *paths: Path) -> Iterator[AuditFault]:
    known = target.doctor.configuration.secrets if target.doctor.configuration else ()
    secrets = [secret for secret in known if len(secret) >= MIN_LENGTH]  # a short one would be found everywhere
    for path in paths:
        try:
            text = path.read_bytes()[:MOST_BYTES].decode(errors="replace") if path.is_file() else ""
        except OSError:
            continue
        for line, said in enumerate(text.splitlines(), 1):
            if at := next((said.index(secret) + 1 for secret in secrets if secret in said), 0):
                remedy = "write NAME=... into .env, ${NAME} here, and get a new one: this one was readable"
                yield AuditFault(SourceLocation(str(path), line, at), "a secret is here in plain text", remedy)


@make_check("secrets.in-unit", "error", "everybody on this machine can read a unit")
def _find_unit_secrets(target: AuditTarget) -> Iterator[AuditFault]:
    for fault in _find_secrets(target, *target.units):
        remedy = "put it into a file below /etc/credstore, or into .env: everybody can read units"
        yield fault._replace(remedy=remedy)


@make_check("hooks.fail-open", "warning", "a call that makes the hook fail gets past it")
def _find_fail_open(target: AuditTarget) -> Iterator[AuditFault]:
    return _find_open_guards(target, "")


@make_check("plugins.fail-open", "warning", "a call that makes the plugin fail gets past it")
def _find_fail_open_plugins(target: AuditTarget) -> Iterator[AuditFault]:
    return _find_open_guards(target, PLUGIN_PREFIX)


@make_check("secrets.in-config", "warning", "settings are shown, copied and put into repositories; .env is not")
def _find_in_config(target: AuditTarget) -> Iterator[AuditFault]:
    return _find_secrets(target, target.home.config, target.home.hermes_config)


@make_check("secrets.in-instructions", "error", "it is sent to the model, and the model can say it")
def _find_in_instructions(target: AuditTarget) -> Iterator[AuditFault]:
    return _find_secrets(
        target, target.home.boot_md, target.home.heartbeat_md, *sorted(target.home.skills.glob("**/SKILL.md"))
    )


@make_check(
    "secrets.in-hooks", "warning", "hooks are copied and shared; `env` in the manifest gives them what they need"
)
def _find_in_hooks(target: AuditTarget) -> Iterator[AuditFault]:
    return _find_secrets(target, *(version.path / file.name for version in target.hooks for file in version.files))
