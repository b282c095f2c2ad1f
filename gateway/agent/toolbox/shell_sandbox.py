"""The sandbox of the shell tool's commands, and the signs that a command may have failed because of it."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from gateway.agent.toolbox.shell_rules import ShellPlaces, find_program
from gateway.config.settings import SandboxSettings
from gateway.errors import AgentError
from gateway.messages.authors import HOOK
from gateway.messages.roles import is_admin
from gateway.worker.protocol import CommandSandbox
from gateway.worker.sandbox import SandboxSupport

# The words of programs that could not reach something; other failures use the same words.
OUT_OF_REACH = re.compile(
    r"permission denied|operation not permitted|EACCES|EPERM|not permitted|access denied|no new privileges"
    r"|read-only file system|EROFS|could not resolve|name resolution|network is unreachable"
    r"|cannot connect to the docker|authentication agent"
    r"|could not connect|failed to (?:connect|establish)|unable to (?:connect|access|create)|cannot open display"
    r"|host key verification failed|could not create directory",
    re.IGNORECASE,
)


class ShellSandbox(msgspec.Struct, frozen=True):
    """The settings, the support by this host, and hidden paths that are open beside the roots."""

    settings: SandboxSettings
    support: SandboxSupport
    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()

    @property
    def is_held(self) -> bool:
        """True if commands run in our own sandbox here, with files and network limited."""
        return self.is_there and self.support.has_filter

    @property
    def has_front(self) -> bool:
        return self.settings.mode == "auto" and bool(self.settings.command)

    @property
    def is_there(self) -> bool:
        return self.settings.mode == "auto" and not self.settings.command and self.support.landlock > 0

    def make(self, places: ShellPlaces, is_offline: bool = False) -> CommandSandbox | None:
        """Return the restrictions of a command; None if the sandbox is off, or not supported by this kernel."""
        if not self.is_there:
            return None
        wanted = self.settings
        return CommandSandbox(
            hidden=tuple(map(str, places.hidden)),
            read=tuple(map(str, (*places.readable, *self.readable))),
            write=tuple(map(str, (*places.roots, *self.writable))),
            kept=tuple(map(str, places.kept)),
            net=wanted.network and not is_offline,
            sockets=wanted.sockets and not is_offline,
        )

    def find_front(self, places: ShellPlaces) -> tuple[str, ...]:
        """Return the person's own program to put before a command.

        Raises:
            AgentError: the program was not found.
        """
        if not self.has_front:
            return ()
        name, *more = self.settings.command
        program = name if name.startswith("/") else find_program(name, places.program_folders)
        if program is None:
            raise AgentError(f"tools.sandbox.command: program {name} not found; install it, or write its whole path")
        return (program, *more)


def is_trusted(facts: Mapping[str, Any]) -> bool:
    """Return True if an owner or an admin caused this turn themself, and no hook for them."""
    return is_admin(facts.get("role")) and not str(facts.get("user_id", "")).startswith(HOOK)


def is_refused(output: str) -> bool:
    """Return True if a failed command reports that something was out of its reach."""
    return OUT_OF_REACH.search(output) is not None
