"""Checks of file rights: who else could change the gateway's instructions, or read its data. `--fix` repairs these."""

import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from gateway.cli.security.target import AuditFault, AuditTarget, as_faults, make_check
from gateway.config.permissions import check_owner, check_readers, check_shape, check_writers, list_places, make_finding
from gateway.hooks.places.folder_source import GROUP_WRITABLE, OTHER_OWNER, WORLD_WRITABLE
from gateway.hooks.places.sources import HookVersion

WRITERS, OTHERS = 0o022, 0o077
LEADS_OUT = "is a link that leads out of the folder"


@make_check("files.misshapen", "error", "the owner of a link in place of our own file can turn it to another one")
def _find_misshapen(target: AuditTarget) -> Iterator[AuditFault]:
    for path, wanted, follow in list_places(target.home):
        yield from as_faults(check_shape(path, wanted, follow=follow))


@make_check("files.other-owner", "error", "another user of this host can change the gateway's settings or data")
def _find_other_owners(target: AuditTarget) -> Iterator[AuditFault]:
    home = target.home
    tasks = (home.boot_md, home.heartbeat_md)
    kept = (home.journal, home.logs, home.files, home.hooks_lock, *tasks, home.hermes_config)
    for path in (*(place[0] for place in list_places(home)), *kept):
        yield from as_faults(check_owner(path))


def _find_writers(paths: Iterable[Path]) -> Iterator[AuditFault]:
    for path in paths:
        yield from as_faults(check_writers(path), path.resolve(), bits=WRITERS)


def _find_readers(paths: Iterable[Path], what: str) -> Iterator[AuditFault]:
    for path in paths:
        yield from as_faults(check_readers(path, what), path.resolve(), bits=OTHERS)


def _list_context_files(target: AuditTarget) -> Iterator[Path]:
    """Yield the files that agents obey, beside their instructions."""
    root = target.home.path(next(iter(target.settings.tools.roots), ""))
    for agent in (target.settings.main, *target.settings.agents.values()):
        yield from (root / Path(written).expanduser() for written in agent.context_files)


def _list_skill_files(target: AuditTarget) -> Iterator[Path]:
    yield target.home.skills
    yield from sorted(target.home.skills.glob("**/SKILL.md"))


@make_check("sockets.control-open", "error", "any program that reaches the control socket counts as the owner")
def _find_open_socket(target: AuditTarget) -> Iterator[AuditFault]:
    """Check the folder of the control socket: it protects the socket, whose users count as the owner."""
    folder = target.home.socket.parent
    try:
        is_open = target.home.socket.is_socket() and bool(folder.stat().st_mode & stat.S_IXOTH)
    except OSError:
        return
    if is_open:
        found = make_finding(folder, "others can enter the folder of the control socket", f"run: chmod 700 {folder}")
        yield from as_faults([found], folder, bits=OTHERS)


def _find_in_hooks(target: AuditTarget, *begins: str) -> Iterator[AuditFault]:
    """Find faults of hooks about owners and rights, by the beginning of the findings."""
    for version in target.hooks:
        found = [one for one in version.findings if one.what.startswith(begins)]
        is_chmod = WORLD_WRITABLE in begins and version.source.is_placed
        paths = _list_hook_paths(version) if is_chmod else ()
        yield from as_faults(found, *paths, bits=WRITERS if is_chmod else 0)


def _list_hook_paths(version: HookVersion) -> tuple[Path, ...]:
    code = (version.path / file.name for file in version.files)
    below = {folder for file in version.files for folder in (version.path / file.name).parents}
    return (version.source.path, version.path, *code, *(folder for folder in below if version.path in folder.parents))


@make_check("files.home-writable", "error", "others can put hooks and settings there, and these run with your rights")
def _find_home_writable(target: AuditTarget) -> Iterator[AuditFault]:
    return _find_writers([target.home.root, target.home.own_folder])


@make_check("files.settings-writable", "error", "others can authorize themselves, and run commands")
def _find_settings_writable(target: AuditTarget) -> Iterator[AuditFault]:
    return _find_writers([target.home.config, target.home.env, target.home.hermes_config])


@make_check("files.env-readable", "error", "other users of this machine can take your tokens and keys")
def _find_env_readable(target: AuditTarget) -> Iterator[AuditFault]:
    return _find_readers([target.home.env], "others can read your secrets")


@make_check("web.key-readable", "error", "others can pass for this gateway, and read what people say to its page")
def _find_key_readable(target: AuditTarget) -> Iterator[AuditFault]:
    return _find_readers(
        [Path(key)] if (key := target.settings.web.tls.key) else [], "others can read the key of the port"
    )


@make_check("files.folder-readable", "warning", "others can look at what the gateway keeps; the next start closes it")
def _find_folder_readable(target: AuditTarget) -> Iterator[AuditFault]:
    return _find_readers([target.home.own_folder], "others can look into it")


@make_check("files.journal-readable", "warning", "it contains all conversations")
def _find_journal_readable(target: AuditTarget) -> Iterator[AuditFault]:
    return _find_readers(
        [target.home.search, *sorted(target.home.own_folder.glob("journal.db*"))], "others can read the journal"
    )


@make_check("files.logs-readable", "warning", "logs say who wrote when, and what failed")
def _find_logs_readable(target: AuditTarget) -> Iterator[AuditFault]:
    return _find_readers([target.home.logs, target.home.hook_logs], "others can read the logs")


@make_check("files.attachments-readable", "warning", "it contains the files that people sent")
def _find_attachments_readable(target: AuditTarget) -> Iterator[AuditFault]:
    return _find_readers([target.home.files], "others can read attachments")


@make_check("files.backups-readable", "warning", "a backup holds all conversations")
def _find_backups_readable(target: AuditTarget) -> Iterator[AuditFault]:
    return _find_readers([target.home.backups, *sorted(target.home.backups.glob("*"))], "others can read backups")


@make_check("files.boot-writable", "error", "the agent does what BOOT.md and HEARTBEAT.md say")
def _find_boot_writable(target: AuditTarget) -> Iterator[AuditFault]:
    return _find_writers([target.home.boot_md, target.home.heartbeat_md])


@make_check("files.skills-writable", "error", "agents obey the text of a skill")
def _find_skills_writable(target: AuditTarget) -> Iterator[AuditFault]:
    return _find_writers(_list_skill_files(target))


@make_check("files.context-writable", "error", "agents obey the text of a context file")
def _find_context_writable(target: AuditTarget) -> Iterator[AuditFault]:
    return _find_writers(dict.fromkeys(_list_context_files(target)))


@make_check("files.hook-state-writable", "error", "it holds what you agreed to and switched on")
def _find_hook_state_writable(target: AuditTarget) -> Iterator[AuditFault]:
    return _find_writers([target.home.hooks_lock, target.home.hook_state, target.home.installed_hooks])


@make_check(
    "hooks.other-owner", "error", "a hook runs with the rights of the gateway's user, and another user wrote it"
)
def _find_other_owner(target: AuditTarget) -> Iterator[AuditFault]:
    return _find_in_hooks(target, OTHER_OWNER)


@make_check("hooks.writable", "error", "a user who can write to a hook can run code with your rights")
def _find_writable(target: AuditTarget) -> Iterator[AuditFault]:
    return _find_in_hooks(target, WORLD_WRITABLE, GROUP_WRITABLE)


@make_check("hooks.leads-out", "error", "code of a hook that is elsewhere can be changed there unseen")
def _find_leads_out(target: AuditTarget) -> Iterator[AuditFault]:
    return _find_in_hooks(target, LEADS_OUT)
