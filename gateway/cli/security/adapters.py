"""Checks of adapters by other authors: who else could write code that runs inside the gateway, and which of it does."""

from collections.abc import Iterator
from pathlib import Path

from gateway.adapters.shared.adapter_finder import LEADS_OUT, check_folder
from gateway.cli.doctor import list_origins
from gateway.cli.security.files import WRITERS
from gateway.cli.security.target import AuditFault, AuditTarget, as_faults, make_check
from gateway.config.permissions import OTHER_OWNER, check_owner, check_writers
from gateway.yaml_source.tree import Finding


def _list_folders(target: AuditTarget) -> list[Path]:
    """List the folders of all adapters, enabled or not: a disabled one may be loaded tomorrow."""
    known = target.doctor.configuration
    return [place.folder for place in known.schema.places.values() if place.folder] if known else []


def _list_findings(target: AuditTarget) -> list[Finding]:
    """List all faults of the directories and their content, each once."""
    found = [one for folder in _list_folders(target) for one in check_folder(folder)]
    for path in _list_dirs(target):
        found += [*check_owner(path), *check_writers(path)]
    return list(dict.fromkeys(found))


def _list_dirs(target: AuditTarget) -> list[Path]:
    return [target.home.path(one) for one in target.settings.adapters.dirs]


def _find_in_folders(target: AuditTarget, begins: str, bits: int = 0) -> Iterator[AuditFault]:
    """Find faults of adapters by the beginning of their words or remedy."""
    for one in _list_findings(target):
        if one.what.startswith(begins) or one.remedy.startswith(begins):
            yield from as_faults([one], *([Path(one.place.source)] if bits else ()), bits=bits)


@make_check("adapters.in-reach", "error", "the agent could change code that runs inside the gateway")
def _find_in_reach(target: AuditTarget) -> Iterator[AuditFault]:
    """Find adapters that commands may write.

    A setting that names a path opens it, even in a directory that is closed to commands.
    """
    tools, dirs = target.settings.tools, [path.resolve() for path in _list_dirs(target)]
    for setting, given in {"tools.roots": tools.roots, "tools.sandbox.write": tools.sandbox.write}.items():
        for written in given:
            path = target.home.path(written).resolve()
            if any(path.is_relative_to(one) for one in dirs):
                what = f"commands of the agent may write {written}, which contains adapters"
                remedy = f"take it out of {setting}, or keep adapters elsewhere"
                yield AuditFault(target.place_of(setting), what, remedy)


@make_check("adapters.in-process", "notice", "code of others that nothing holds back")
def _find_in_process(target: AuditTarget) -> Iterator[AuditFault]:
    for one, origin in list_origins(target.doctor):
        what = f"{one.name} runs inside the gateway, from {origin}: it sees every secret and every conversation"
        setting = ".".join((*one.path, "enabled"))
        yield AuditFault(target.place_of(setting), what, f"unless you trust who wrote it, {setting}: false")


@make_check("adapters.other-owner", "error", "an adapter runs inside the gateway, and another user wrote it")
def _find_other_owner(target: AuditTarget) -> Iterator[AuditFault]:
    return _find_in_folders(target, OTHER_OWNER)


@make_check("adapters.writable", "error", "a user who can write to an adapter can run code inside the gateway")
def _find_writable(target: AuditTarget) -> Iterator[AuditFault]:
    return _find_in_folders(target, "run: chmod", WRITERS)


@make_check("adapters.leads-out", "error", "code of an adapter that is elsewhere can be changed there unseen")
def _find_leads_out(target: AuditTarget) -> Iterator[AuditFault]:
    return _find_in_folders(target, LEADS_OUT)
