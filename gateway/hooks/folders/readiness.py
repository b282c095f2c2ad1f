"""The check whether a hook may and can run now, and the reason if not, without running the hook."""

import re
import shutil
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from gateway.config.settings import HooksSettings
from gateway.errors import HookError
from gateway.hooks.manifests.installed import InstalledHook, list_missing_grants
from gateway.hooks.manifests.manifest import Guard, Manifest, read_document
from gateway.hooks.manifests.reach import find_reach
from gateway.hooks.manifests.requirement import parse_requirement
from gateway.hooks.nats_transport import EXTRA, PACKAGE, has_nats_library, is_nats_url
from gateway.hooks.places.sources import HookVersion, describe_first_error
from gateway.hooks.places.switches import HookSwitches
from gateway.hooks.places.trusted_copy import has_packages, read_whole_folder
from gateway.hooks.services import HookServices
from gateway.hooks.stats import HookState
from gateway.installation import find_installation
from gateway.yaml_source.tree import Finding, SourceLocation, to_printable

NOT_AS_INSTALLED = "its folder is not as it was installed"
PACKAGES_CHANGED = "its packages are not what was installed"

Narrowable = TypeVar("Narrowable", Manifest, Guard)


def check_readiness(
    version: HookVersion, services: HookServices, switches: HookSwitches, kept: Manifest | None = None
) -> HookVersion:
    """Return the version with its settings and its state, which is `registered` if the hook may start.

    `kept` is the manifest of the hook's last good load, which counts as long as the current manifest cannot be read.
    """
    if version.state == "disabled":
        return version
    written = version.manifest  # the owner agreed to the additions of the settings
    version = _read_with_settings(version, services, kept)
    installed, doubt = _find_installed(version, services)
    version = replace(version, stored_as=installed.stored_as if installed else version.stored_as)
    if off := why_not_enabled(version, services.settings, switches):
        return replace(version, state="disabled", reason=off, denied=None)
    if not version.is_ready:
        return version
    if written is None:
        return replace(version, state="broken", reason=describe_first_error(version.findings))
    assert version.manifest
    isolation = _check_isolation(version, version.manifest, services)
    findings = (*version.findings, *isolation, *check_filter(version, services.environment.known_values))
    version = replace(version, findings=findings)
    return _judge_trust(version, services, switches, installed, doubt, written)


def _read_with_settings(version: HookVersion, services: HookServices, kept: Manifest | None) -> HookVersion:
    read = _apply_settings(version, services)
    if version.manifest or kept is None:
        return read
    known = _apply_settings(replace(version, manifest=kept), services)
    return replace(known, denied=read.denied or known.denied)  # a guard that can still be read counts first


def _judge_trust(
    version: HookVersion,
    services: HookServices,
    switches: HookSwitches,
    installed: InstalledHook | None,
    doubt: str,
    written: Manifest,
) -> HookVersion:
    """Judge whether a person approved the hook as it is now, and whether it has all that it needs."""
    manifest = version.manifest
    assert manifest
    if doubt:
        return replace(version, state="broken", reason=doubt)
    version = replace(version, reach=find_reach(manifest, installed is not None, version.source.is_placed))
    try:
        if installed:
            version = replace(version, pinned=find_trust_digest(version))
            if changed := _find_change(version, installed):
                return replace(version, state="broken", reason=f"{changed}; install it again, or remove it")
        elif services.settings.trust == "pinned" or version.dialect.needs_trust:
            version = replace(version, pinned=find_trust_digest(version))
            if not switches.find_trusted(version.name) and version.is_approved:
                switches.trust(version.name, version.pinned)
    except HookError as error:
        return replace(version, state="broken", reason=str(error))
    is_trusted = installed is not None or not version.pinned or switches.is_trusted(version.name, version.pinned)
    state, reason = _check_needs(version, manifest, services, is_trusted)
    # A folder that no person has ever trusted guards nothing: it may have been planted.
    is_known = state != "pending" or version.source.is_named or bool(switches.find_trusted(version.name))
    version = replace(version, denied=version.denied if is_known else None, is_unknown=not is_known)
    excess = "; ".join(list_missing_grants(written, installed.grants)) if installed else ""
    if state == "registered" and excess:
        what = f"it says more than was agreed to when it was installed ({excess})"
        return replace(version, state="pending", reason=f"{what}; install it again to agree to that")
    return replace(version, state=state, reason=reason)


def _find_installed(version: HookVersion, services: HookServices) -> tuple[InstalledHook | None, str]:
    """Return the entry of the installed hook, or the reason why it is unknown; neither for a hook placed by hand."""
    try:
        return services.lock.find(version.path, version.bare_name), ""
    except HookError as error:
        return None, str(error)


def _apply_settings(version: HookVersion, services: HookServices) -> HookVersion:
    """Add the hook's options, and limit the hook to the events of its audience.

    If the settings name agents, the hook gets only the events of these agents' turns. The hook of a skill gets only the
    events of conversations that have loaded the skill. With `hooks.env: strict`, variables and rights do not count if
    only the source code of a folder for Hermes names them.
    """
    audience: dict[str, Sequence[str]] = {}
    settings = services.settings_of(version.name, version.short)
    theirs = version.dialect.options_of(version.bare_name, version.manifest)
    if agents := settings.agents:
        audience["agent"] = agents
    if version.source.conversations is not None:
        audience["session_id"] = sorted(version.source.conversations)
    if version.manifest is None:
        is_denied = version.denied and settings.on_error != "skip"
        denied = _restrict(version.denied, audience) if is_denied and version.denied else None
        return replace(version, denied=denied, options={**theirs, **settings.options})
    manifest = _restrict(version.manifest, audience)
    found = manifest.reading.found
    if services.settings.env == "strict" and (found or not version.dialect.is_own):
        env, uses = (tuple(name for name in names if name not in found) for names in (manifest.env, manifest.uses))
        manifest = msgspec.structs.replace(manifest, env=env, uses=uses).add_reading(found=(), starts_programs=False)
    if settings.env:
        found = tuple(name for name in manifest.reading.found if name not in settings.env)
        env = tuple(dict.fromkeys((*manifest.env, *settings.env)))
        manifest = msgspec.structs.replace(manifest, env=env).add_reading(found=found)
    if settings.schedule is not None:
        manifest = _reschedule(manifest, settings.schedule)
    if on_error := settings.on_error:
        guards, shut = (manifest.reading.guards, manifest.reading.shut) if on_error == "deny" else ((), ())
        manifest = msgspec.structs.replace(manifest, on_error=on_error, says_on_error=True)
        manifest = manifest.add_reading(guards=guards, shut=shut)
    options = {**theirs, **manifest.options, **settings.options}
    return replace(version, manifest=manifest, denied=version.dialect.widen(manifest).guard, options=options)


def _reschedule(manifest: Manifest, schedule: str) -> Manifest:
    """Have the clock call the hook at these times only."""
    event = f"schedule:{manifest.folder}"
    events = [name for name in manifest.events if name != event] + [event] * bool(schedule)
    return msgspec.structs.replace(manifest, schedule=schedule, events=tuple(events))


def _restrict(kept: Narrowable, audience: Mapping[str, Sequence[str]]) -> Narrowable:
    """Limit the hook to this audience; the conditions in its manifest still apply."""
    when = dict(kept.when)
    for field, values in audience.items():
        own = when.get(field, values)
        when[field] = [one for one in ([own] if isinstance(own, str) else own) if one in values]
    return msgspec.structs.replace(kept, when=when) if audience else kept


def why_not_enabled(version: HookVersion, settings: HooksSettings, switches: HookSwitches) -> str:
    """Say why the hook is switched off; "" if the hook is on.

    The configuration decides first, then commands, then the hook's source.
    """
    name = version.called
    configured = settings.find_overrides(version.name, version.short).enabled
    if configured is False or {version.name, version.short} & {*settings.disabled}:
        return f"switched off in config.yaml (hooks.{name}.enabled or hooks.disabled)"
    if configured or is_listed(version, settings.enabled):
        return ""
    decided = switches.is_enabled(version.store_name)
    if decided is not None:
        return "" if decided else f"switched off by command; to switch it on: hermes-gateway hooks enable {name}"
    return version.source.why_disabled(version)


def is_listed(version: HookVersion, enabled: Sequence[str]) -> bool:
    """Tell whether `hooks.enabled` names this hook; for plugins and built-in hooks, the short name counts, too."""
    is_other = version.has_namesake and version.name == version.bare_name and not version.source.is_ours
    return not is_other and (version.name in enabled or version.bare_name in enabled)


def _check_isolation(version: HookVersion, manifest: Manifest, services: HookServices) -> tuple[Finding, ...]:
    if manifest.isolation == "process" or version.source.is_ours:
        return ()
    if services.settings_of(version.name, version.short).isolation == "none":
        return ()
    what = "`isolation: none` counts only where the configuration says so too; it gets its own process"
    remedy = f"write `hooks: {{{version.name}: {{isolation: none}}}}` into config.yaml, or remove it here"
    return (Finding(SourceLocation(f"{version.name}/HOOK.yaml"), what, remedy, "warning"),)


def check_filter(version: HookVersion, known: Mapping[str, Collection[str]]) -> Iterator[Finding]:
    """Yield a warning for each value in the hook's `when` that is similar to a known value.

    Other values may come from a plugin, or name a person.
    """
    for field, wanted in version.manifest.when.items() if version.manifest else ():
        values = known.get(field, ())
        for value in wanted if isinstance(wanted, list) else [wanted]:
            near = get_close_matches(str(value), values, 1) if str(value) not in values else ()
            if near or (field == "tool" and values and str(value) not in values):
                what = f"`when.{field}` is never met: `{to_printable(str(value), 100)}` is unknown here"
                place = read_document(version.path).place("when", field)
                remedy = f"did you mean `{near[0]}`?" if near else "keep it if a plugin or a server of tools brings it"
                yield Finding(place, what, remedy, "warning")


def _check_needs(
    version: HookVersion, manifest: Manifest, services: HookServices, is_trusted: bool
) -> tuple[HookState, str]:
    if wrong := describe_first_error(version.findings):
        return "broken", wrong
    if not is_trusted:
        return "pending", f"not trusted as it is now; read it, then run: hermes-gateway hooks trust {version.called}"
    around = services.environment
    own = (str(around.packages_of(version.name)),) if manifest.requires.python or manifest.reading.former else ()
    places = (*version.source.places_of(version), *own, *around.packages)
    missing = list(find_missing_needs(manifest, around.environ, around.platforms, places, version.called))
    return ("missing", "; ".join(missing)) if missing else ("registered", "")


def _find_change(version: HookVersion, installed: InstalledHook) -> str:
    """Say what has changed in the hook since it was installed; "" if nothing has changed."""
    if version.pinned != installed.digest:
        return NOT_AS_INSTALLED
    return "" if has_packages(version.packages, installed.packages_digest) else PACKAGES_CHANGED


def find_trust_digest(version: HookVersion) -> str:
    """Return the hash that a person trusts, of the whole folder or of the code."""
    is_folder = version.files and version.path.is_dir()
    return read_whole_folder(version.path).digest if is_folder else version.digest


def find_missing_needs(
    manifest: Manifest,
    environ: Mapping[str, str],
    platforms: Collection[str],
    packages: Sequence[str],
    called: str = "",
) -> Iterator[str]:
    """Yield each missing need as a sentence with its remedy.

    `called` is the hook's name if it differs from the name of the folder. `environ` is the environment that the hook
    would have, `packages` the folders in which its interpreter looks for packages.
    """
    for name in manifest.requires.bins:
        if shutil.which(name, path=environ.get("PATH")) is None:
            yield f"the program {name} is not on the PATH; install it"
    wanted = (*manifest.requires.env, *((manifest.secret_env,) if manifest.secret_env else ()))
    for name in dict.fromkeys(wanted):
        if not environ.get(name):
            yield f"the environment variable {name} is not set; put it into .env and start the gateway again"
    if is_nats_url(manifest.url) and not has_nats_library():
        line = find_installation(Path(sys.prefix), Path(sys.base_prefix)).describe_addition((PACKAGE,))
        yield f"the extra `{EXTRA}` is not installed; run: {line}"
    yield from _find_missing_packages(manifest, packages, f"hermes-gateway hooks deps {called or manifest.folder}")
    if manifest.requires.platforms and not set(manifest.requires.platforms) & set(platforms):
        names = " or ".join(manifest.requires.platforms)
        yield f"no platform {names} is configured; run: hermes-gateway setup"


def _find_missing_packages(manifest: Manifest, packages: Sequence[str], command: str) -> Iterator[str]:
    for text in manifest.requires.python:
        if reason := _describe_missing_package(text, packages):
            yield f"the Python package {reason}; run: {command}"
    for name in manifest.reading.former:
        if PathFinder.find_spec(name, [*packages]) is None:
            yield f"the package {name} is missing; run: {command} {name}"


def list_missing_packages(wanted: Iterable[str], packages: Sequence[str]) -> list[str]:
    """List the requirements, as written, that no package in these folders fulfils."""
    return [text for text in wanted if _describe_missing_package(text, packages)]


def _describe_missing_package(text: str, packages: Sequence[str]) -> str:
    requirement = parse_requirement(text)
    version = next(
        (found for place in packages if (found := _find_installed_version(requirement.name, Path(place)))), ""
    )
    if not version:
        return f"{requirement.name} is not installed"
    if requirement.specifier.contains(version, prereleases=True):
        return ""
    return f"{requirement.name} is there in version {version}, and {requirement.specifier} is wanted"


def _find_installed_version(name: str, place: Path) -> str:
    """Read the version of a package from its metadata folder's name; importlib.metadata costs 10 ms."""
    wanted = fold_name(name)
    try:
        entries = sorted(entry.name for entry in place.iterdir() if entry.suffix == ".dist-info")
    except OSError:
        return ""
    for entry in entries:
        package, _, version = entry.removesuffix(".dist-info").partition("-")
        if fold_name(package) == wanted:
            return version
    return ""


def fold_name(name: str) -> str:
    """Fold a package's name as PEP 503 does, so that equal names compare equal."""
    return re.sub(r"[-_.]+", "-", name).lower()
