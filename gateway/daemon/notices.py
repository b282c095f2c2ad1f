"""What somebody may want to know of their home though nothing is wrong: who asks to be let in, and what is new."""

import logging

from gateway import record_subjects, records
from gateway.access import AccessControl
from gateway.config.loading import Configuration
from gateway.engine import Engine, NewRecord
from gateway.errors import EngineError, RecordDamage

log = logging.getLogger(__name__)

OWNER = "gateway/notices"  # no hook has such a name: a folder's name has no slash in it
HELD_VOICE = "voice programs in a sandbox"
VOICE_NETWORK = (
    "programs under `voice` read only themselves and what their arguments and `read` name now, and have the network "
    "still; to take it: voice: {transcribe: {network: false}, speak: {network: false}}"
)


async def is_new_journal(engine: Engine) -> bool:
    """As long as nothing is written, be it damaged by now; that no answer comes is no empty journal.

    Raises:
        EngineError: the journal cannot be read.
    """
    try:
        return not await engine.read(">", limit=1)
    except RecordDamage:
        return False


async def has_voice_network(engine: Engine, is_empty: bool) -> bool:
    """Was anything done in this home before voice programs were held? Then they keep the network. It is kept."""
    kept = await _keep_once(engine, HELD_VOICE, is_empty)
    return not (is_empty if kept is None else kept)


def needs_word_of_voice(configuration: Configuration, has_network: bool) -> bool:
    """Is a program set that has the network since nothing is said of it?"""
    voice = configuration.settings.voice
    return has_network and any(one.command and one.network is None for one in (voice.transcribe, voice.speak))


async def _keep_once(engine: Engine, key: str, is_empty: bool) -> bool | None:
    """What an earlier start has kept under this key; None: no start has, and now this is kept."""
    where = record_subjects.hook_store_subject_of(OWNER, key)
    _, kept = await records.read_last(engine, where, records.StoredValue)
    if kept is not None:
        return bool(kept.value)
    found = records.StoredValue(hook=OWNER, key=key, value=is_empty)
    try:
        await engine.append(NewRecord(where, records.encode(found)))
    except EngineError as error:
        log.info("whether this home is new is found out again at the next start: %s", error)
    return None


def list_notices(access: AccessControl, configuration: Configuration, has_voice_network: bool) -> list[str]:
    """For `status`."""
    return [
        *(
            f"{one.served_as} user {one.user_id} asks to be let in: hermes-gateway pairing list"
            for one in access.pairings.asking
        ),
        *([VOICE_NETWORK] if needs_word_of_voice(configuration, has_voice_network) else []),
    ]
