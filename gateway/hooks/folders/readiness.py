"""Whether a folder may and can be a hook now, and if not, why: everything that is known without running it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import msgspec

from gateway.hermes.config import HermesHooks
from gateway.hooks.folders.inspection import Inspection
from gateway.hooks.folders.manifest import Guard, Manifest
from gateway.hooks.folders.requirements import find_missing_needs
from gateway.hooks.folders.services import HookServices
from gateway.hooks.folders.sources import FoundHook
from gateway.hooks.folders.stats import HookState
from gateway.hooks.folders.switches import HookSwitches
from gateway.yaml_source import Finding, SourceLocation

READY: HookState = "registered"

Narrowable = TypeVar("Narrowable", Manifest | None, Guard | None)


@dataclass(frozen=True, slots=True)
class Readiness:
    """One look at a folder. `state` is `registered` when it may be started; else `reason` says why it may not.

    `denied` is what must not happen while the hook cannot answer.
    """

    folder: FoundHook
    state: HookState
    reason: str = ""
    manifest: Manifest | None = None
    denied: Guard | None = None
    digest: str = ""
    findings: tuple[Finding, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_ready(self) -> bool:
        return self.state == READY

    def is_same_as(self, other: "Readiness") -> bool:
        """Nothing that counts is different: contents, settings, and what is there on this machine."""
        return replace(self, folder=other.folder) == other and self.folder.path == other.folder.path

    def is_same_code_as(self, other: "Readiness") -> bool:
        """What may differ is which events it is to hear: a process that runs can go on with them."""
        if not self.is_ready or self.manifest is None or other.manifest is None:
            return False
        as_there = replace(self, manifest=other.manifest, denied=other.denied)
        heard = msgspec.structs.replace(self.manifest, when=other.manifest.when)
        return as_there.is_same_as(other) and heard == other.manifest


def check_readiness(folder: FoundHook, study: Inspection, house: HookServices, switches: HookSwitches) -> Readiness:
    """What follows from a folder's contents, from settings, and from what is there on this machine."""
    if folder.is_refused:
        return Readiness(folder, "refused", _describe_first_error(folder.findings), findings=folder.findings)
    manifest, guard = (
        _restrict_audience(_drop_undeclared(study.manifest, house), folder, house),
        _restrict_audience(study.guard, folder, house),
    )
    findings = (*folder.findings, *study.findings)
    if off := _why_disabled(folder, manifest, house, switches):
        return Readiness(folder, "disabled", off, manifest, None, study.digest, findings)
    if manifest is None:
        return Readiness(folder, "broken", _describe_first_error(findings), None, guard, study.digest, findings)
    findings += _check_isolation(folder, manifest, house)
    state, reason = _check_needs(manifest, study.digest, findings, house, switches)
    # Nothing counts of a folder that nobody has ever trusted: it may have been planted.
    denied = guard if state != "pending" or switches.was_trusted(folder.name) else None
    options = {**_plugin_options_of(folder, manifest), **house.options_of(manifest)}
    return Readiness(folder, state, reason, manifest, denied, study.digest, findings, options)


def _restrict_audience(kept: Narrowable, folder: FoundHook, house: HookServices) -> Narrowable:
    """The hook of some agents hears their turns alone, that of a skill the conversations that have it."""
    agents, conversations = house.settings_of(folder.name).agents, folder.source.conversations
    if agents:
        kept = _restrict_field(kept, "agent", agents)
    return kept if conversations is None else _restrict_field(kept, "session_id", sorted(conversations))


def _restrict_field(kept: Narrowable, field: str, values: Sequence[str]) -> Narrowable:
    """What its manifest asks for besides still holds."""
    if kept is None:
        return kept
    own = kept.when.get(field, values)
    wanted = [own] if isinstance(own, str) else own
    return msgspec.structs.replace(kept, when={**kept.when, field: [one for one in wanted if one in values]})


def _plugin_options_of(folder: FoundHook, manifest: Manifest) -> Mapping[str, Any]:
    """What Hermes's configuration has for a plugin (`plugins.entries`)."""
    if folder.source.hermes is None or manifest.kind != "plugin":
        return {}
    entries = folder.source.hermes.read().entries
    return entries.get(folder.name) or entries.get(manifest.name) or {}


def _check_needs(
    manifest: Manifest, digest: str, findings: tuple[Finding, ...], house: HookServices, switches: HookSwitches
) -> tuple[HookState, str]:
    if wrong := _describe_first_error(findings):
        return "broken", wrong
    must_be_trusted = house.settings.trust == "pinned" or manifest.kind == "shell"
    if must_be_trusted and not switches.is_trusted(manifest.folder, digest):
        return "pending", f"not trusted as it is now; read it, then run: hermes-gateway hooks trust {manifest.folder}"
    around = house.surroundings
    own = (str(around.packages_of(manifest.folder)),) if manifest.needs_python else ()
    lacking = list(find_missing_needs(manifest, around.environ, around.platforms, (*own, *around.packages)))
    return ("missing", "; ".join(lacking)) if lacking else (READY, "")


def _why_disabled(folder: FoundHook, manifest: Manifest | None, house: HookServices, switches: HookSwitches) -> str:
    """Why the hook is switched off, or nothing. The configuration decides first, then commands, then the manifest."""
    name, settings = folder.name, house.settings
    configured = house.settings_of(name).enabled
    if configured is False or name in settings.disabled:
        return f"switched off in config.yaml (hooks.{name}.enabled or hooks.disabled)"
    if configured or name in settings.enabled:
        return ""
    decided = switches.is_enabled(name)
    if decided is not None:
        return "" if decided else f"switched off by command; to switch it on: hermes-gateway hooks enable {name}"
    if folder.source.kind in ("shell", "outbound"):
        return ""
    if folder.source.kind == "plugin":
        return _why_plugin_disabled(folder, manifest)
    if folder.source.is_opt_in and not (manifest and manifest.enabled):
        return f"comes with the gateway and is off; to switch it on: hermes-gateway hooks enable {name}"
    return "" if manifest is None or manifest.enabled else "`enabled: false` stands in its HOOK.yaml"


def _why_plugin_disabled(folder: FoundHook, manifest: Manifest | None) -> str:
    """As in Hermes: off unless its configuration names it, by folder or by name; `plugins.disabled` wins."""
    hermes = folder.source.hermes.read() if folder.source.hermes else HermesHooks()
    names = {folder.name, f"{folder.source.path.name}/{folder.name}", *([manifest.name] if manifest else [])}
    if names & hermes.disabled:
        return "switched off in Hermes's config.yaml (plugins.disabled)"
    if names & hermes.enabled:
        return ""
    return f"is off, as every plugin at first; to switch it on: hermes-gateway hooks enable {folder.name}"


def _drop_undeclared(manifest: Manifest | None, house: HookServices) -> Manifest | None:
    """With `hooks.env: strict`, what only stands in the source of a folder written for Hermes does not count."""
    if manifest is None or not manifest.found or house.settings.env == "lenient":
        return manifest
    return msgspec.structs.replace(manifest, env=(), uses=(), found=())


def _check_isolation(folder: FoundHook, manifest: Manifest, house: HookServices) -> tuple[Finding, ...]:
    if manifest.isolated or folder.source.is_opt_in or house.settings_of(folder.name).isolation == "none":
        return ()
    what = "`isolation: none` counts only where the configuration says so too; it gets its own process"
    remedy = f"write `hooks: {{{folder.name}: {{isolation: none}}}}` into config.yaml, or remove it here"
    return (Finding(SourceLocation(f"{folder.name}/HOOK.yaml"), what, remedy, "warning"),)


def _describe_first_error(findings: tuple[Finding, ...]) -> str:
    """The first error, and how many there are."""
    errors = [finding for finding in findings if finding.severity == "error"]
    if not errors:
        return ""
    more = f" (and {len(errors) - 1} more: hermes-gateway hooks check)" if len(errors) > 1 else ""
    return f"{errors[0].place}: {errors[0].what}; {errors[0].remedy}{more}"
