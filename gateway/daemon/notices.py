"""The notices of a home, which are not faults: pairing requests, and changes by an upgrade.

Users and guests lost tools when an upgrade made tools depend on roles. A home older than that upgrade reports the loss
at each start and in `status`, until its configuration says which tools each role has.
"""

import logging

from gateway.access.access_control import AccessControl
from gateway.config.loading import Configuration
from gateway.daemon.groups.people import People
from gateway.daemon.groups.process import Base, Run
from gateway.daemon.groups.storage import Storage
from gateway.daemon.groups.work import Work
from gateway.daemon.tool_servers import list_tool_notices
from gateway.engine.interface import Engine
from gateway.errors import EngineError, RecordDamage
from gateway.records import records, subjects
from gateway.records.stores import make_value_put

log = logging.getLogger(__name__)

OWNER = "gateway/notices"  # no hook has this name: names of folders have no slash
FEWER_TOOLS = "tools by role"
OWN_FOLDERS = "files by conversation"
HELD_VOICE = "voice programs in a sandbox"
TOOLS_LINE = "access: {tools: {user: all, guest: all}}"
FEWER = f"agents have fewer tools for users and guests than before, and no shell; to give all back: {TOOLS_LINE}"
VOICE_NETWORK = (
    "programs under `voice` read only themselves and what their arguments and `read` name now, and have the network "
    "still; to take it: voice: {transcribe: {network: false}, speak: {network: false}}"
)
OTHER_FOLDERS = (
    "agents work for each user in a folder of their own now, below hermes-gateway/files, and no longer in tools.roots, "
    "which owners and admins have; the files there stay there: docs/permissions.md in the sources"
)


async def is_new_journal(engine: Engine) -> bool:
    """Return True if nothing was ever written to the journal. A damaged record counts as written.

    Raises:
        EngineError: the journal cannot be read.
    """
    try:
        return not await engine.read(">", limit=1)
    except RecordDamage:
        return False


async def is_new_home(engine: Engine, is_empty: bool) -> bool:
    """Return True if this home began after tools depended on roles; keep `is_empty` (of the journal) as the answer."""
    kept = await _keep_once(engine, FEWER_TOOLS, is_empty)
    return is_empty if kept is None else kept


async def needs_word_of_folders(engine: Engine, is_empty: bool) -> bool:
    """Return True if an older home starts for the first time with a folder for each user, and record this start."""
    return await _keep_once(engine, OWN_FOLDERS, is_empty) is None and not is_empty


async def has_voice_network(engine: Engine, is_empty: bool) -> bool:
    """Return True if this home is older than the sandbox of voice programs; keep the answer for later starts."""
    kept = await _keep_once(engine, HELD_VOICE, is_empty)
    return not (is_empty if kept is None else kept)


def needs_word_of_voice(configuration: Configuration, has_network: bool) -> bool:
    """Return True if a voice program keeps the network because no setting decides about its network."""
    voice = configuration.settings.voice
    return has_network and any(one.command and one.network is None for one in (voice.transcribe, voice.speak))


async def _keep_once(engine: Engine, key: str, is_empty: bool) -> bool | None:
    """Return the answer that an earlier start kept. If no start kept an answer, keep `is_empty` and return None."""
    _, kept = await records.read_last(engine, subjects.hook_store_subject_of(OWNER, key), records.StoredValue)
    if kept is not None:
        return bool(kept.value)
    try:
        await engine.append(make_value_put(OWNER, key, is_empty))
    except EngineError as error:
        log.info("whether this home is new is found out again at the next start: %s", error)
    return None


def has_changed_tools(access: AccessControl, configuration: Configuration, is_new: bool) -> bool:
    """Return True if the upgrade changed the tools of a person, and the configuration does not set the tools."""
    is_said = any(name.startswith("access.tools.") for name in configuration.origins)
    return not (is_new or is_said) and access.has_others()


def list_notices(
    access: AccessControl, configuration: Configuration, is_new: bool, has_voice_network: bool
) -> list[str]:
    """List the notices for `status`."""
    return [
        *(
            f"{one.served_as} user {one.user_id} asks for access: hermes-gateway pairing list"
            for one in access.pairings.asking
        ),
        *([FEWER] if has_changed_tools(access, configuration, is_new) else []),
        *([VOICE_NETWORK] if needs_word_of_voice(configuration, has_voice_network) else []),
    ]


def list_all_notices(base: Base, run: Run, storage: Storage, people: People, work: Work) -> list[str]:
    """List the notices of all groups."""
    known = list_notices(people.access, base.current.configuration, run.is_new, work.voice_programs.has_network)
    held = [*map(work.context_files.describe, work.context_files.list_held())]
    folders = [*storage.folders.left_out.values(), *storage.folders.absent.values()]
    no_port = [run.web.port.trouble] if run.web and run.web.port.trouble else []
    skills = [str(finding) for finding in work.agents.now.findings]
    return [*known, *held, *list_tool_notices(work.tool_servers), *no_port, *skills, *folders]
