"""Every error of the gateway, named after what was at fault. A message names the thing, the place and the remedy."""

import errno
import os
from enum import IntEnum
from typing import Any

FULL_DISK = (errno.ENOSPC, errno.EDQUOT)


class ExitCode(IntEnum):
    """The exit codes, by which a supervisor knows what to do."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_RUNNING = 3
    KEPT = 4  # `send`: the message is kept, and its network has not taken it yet
    RESTART = 75
    CONFIG = 78
    INTERRUPTED = 130


class GatewayError(Exception):
    """The root; raised only through its children."""

    exit = ExitCode.FAILED


class ConfigError(GatewayError):
    """The configuration, the environment or the home has a fault."""

    exit = ExitCode.CONFIG


class HomeBusy(GatewayError):
    """Another gateway serves this home."""


class DiskError(GatewayError):
    """The disk is full or cannot be written."""


class NotRunning(GatewayError):
    """No gateway answers on this home's control socket."""

    exit = ExitCode.NOT_RUNNING


class HookError(GatewayError):
    """A hook could not be read, loaded or called, or gave a forbidden answer."""


class ModelError(GatewayError):
    """A language model failed; `kind` is the same word for all providers, and `remedy` the setting to write."""

    def __init__(
        self, message: str, *, kind: str = "other", retry_after: float | None = None, remedy: str = ""
    ) -> None:
        super().__init__(f"{message}; {remedy}" if remedy else message)
        self.what, self.remedy = message, remedy
        self.kind = kind
        self.retry_after = retry_after


class AgentError(GatewayError):
    """A turn, a tool or a skill failed; the model or the person reads this text."""


class BudgetRefusal(AgentError):
    """A call of a model would exceed a budget; the person reads this text."""


class VoiceError(GatewayError):
    """The audio could not be transcribed; `is_final` if another try cannot help."""

    def __init__(self, message: str, *, is_final: bool = False) -> None:
        super().__init__(message)
        self.is_final = is_final


class SessionError(GatewayError):
    """The request about a session cannot be met; the person reads this text."""


class AccessError(GatewayError):
    """Access cannot be granted or removed; the person who tried reads this text."""


class RoleRefused(AccessError):
    """The request needs a higher role."""


class AdapterError(GatewayError):
    """A chat network refused or could not be reached; `permanent` when trying again cannot help."""

    def __init__(self, message: str, *, permanent: bool = False, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.permanent = permanent
        self.retry_after = retry_after


class EngineError(GatewayError):
    """The journal cannot do its work now: disk full, damaged, closed."""


class EngineTooNew(EngineError):
    """The journal was written by a later version; opening it could lose what that version knows."""

    exit = ExitCode.CONFIG


class NoRoom(EngineError):
    """The storage is full; the operator of the servers can extend it."""


class Conflict(EngineError):
    """The subject's last sequence was not the expected one: another writer owns it now."""


class AppendSizeError(ValueError):
    """The append is too large: it has to be split."""


class RecordDamage(EngineError):
    """The record at `seq` is not as it was written; all others can be read. `before`: those read before it."""

    def __init__(self, seq: int, subject: str) -> None:
        super().__init__(
            f"record {seq} on {subject} is not as it was written: the disk has changed it; put a backup back with: "
            "hermes-gateway backup restore FILE"
        )
        self.seq = seq
        self.before: list[Any] = []


class Duplicate(EngineError):
    """A record with this message id is in the journal already."""


def unwrap_error(error: BaseException) -> BaseException:
    """Return the error that counts: of a group the one that came first, since the others mostly follow from it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def describe_error(error: BaseException) -> str:
    """Describe the error that counts: one of ours explains itself, any other is named by its class too."""
    error = unwrap_error(error)
    if str(error) and isinstance(error, GatewayError):
        return str(error)
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def describe_cause(error: BaseException) -> str:
    """Describe the error of a connection that one library after the other has wrapped."""
    inner = [error.__cause__, *error.args, *getattr(error, "exceptions", ())]
    if found := next((one for one in inner if isinstance(one, BaseException)), None):
        return describe_cause(found)
    if type(error).__name__ == "gaierror":  # every command reads this module, and few need sockets
        return "no machine of that name was found"
    if isinstance(error, OSError) and str(error).startswith("[Errno "):  # those of TLS have texts of their own
        return os.strerror(error.errno or 0).lower()
    return str(error) or type(error).__name__
