"""The plugins, shell hooks and outbound webhooks in Hermes's own `config.yaml`, which is read and never written.

A look reads the file again if it has changed. Unclear entries are left out, with a finding; while the file cannot be
read at all, its earlier contents count.
"""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from gateway.yaml_source.parser import read_yaml
from gateway.yaml_source.tree import (
    Finding,
    SourceLocation,
    YamlMapping,
    YamlNode,
    YamlScalar,
    YamlSequence,
    as_float,
    to_plain,
)

log = logging.getLogger(__name__)

FILE_LIMIT = 2_000_000
OUTBOUND_KEY = "outbound"
SHELL_TIMEOUT, LONGEST_SHELL_TIMEOUT = 60.0, 300.0
WEBHOOK_TIMEOUT, LONGEST_WEBHOOK_TIMEOUT = 10.0, 60.0


class ShellEntry(msgspec.Struct, frozen=True):
    """One entry of `hooks.<event>`: a command that is run for each such event."""

    event: str
    command: str
    matcher: str = ""
    timeout: float = SHELL_TIMEOUT
    fail_closed: bool = False


class OutboundEntry(msgspec.Struct, frozen=True):
    """One entry of `hooks.outbound`: a URL that gets events."""

    url: str
    events: tuple[str, ...]
    matcher: str = ""
    secret_env: str = ""
    timeout: float = WEBHOOK_TIMEOUT


class HermesHooks(msgspec.Struct, frozen=True):
    """The hooks in the file. `entries` are the settings of plugins, by name."""

    enabled: frozenset[str] = frozenset()
    disabled: frozenset[str] = frozenset()
    entries: Mapping[str, Mapping[str, Any]] = msgspec.field(default_factory=dict)
    shell: tuple[ShellEntry, ...] = ()
    outbound: tuple[OutboundEntry, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.enabled or self.disabled or self.shell or self.outbound)


@dataclass(slots=True)
class HermesConfig:
    """Hermes's configuration file.

    In Hermes's safe mode (`is_safe`) none of its hooks counts. `trouble` says why the file cannot be read now.
    """

    path: Path
    is_safe: bool = False
    trouble: str = field(default="", init=False, compare=False, repr=False)
    _stamp: tuple[int, int] | None = field(default=None, init=False, compare=False, repr=False)
    _read: HermesHooks = field(default_factory=HermesHooks, init=False, compare=False, repr=False)

    def read(self) -> HermesHooks:
        """Return the present contents; read the file again if it has changed."""
        if self.is_safe:
            return HermesHooks()
        try:
            found = self.path.stat()
        except OSError as error:
            self.trouble = f"{self.path} cannot be read: {error.strerror}"
            return self._read
        stamp = (found.st_mtime_ns, found.st_size)
        if stamp != self._stamp or self.trouble:
            made = read_hermes_config(self.path)
            said = next((str(finding) for finding in made.findings if finding.severity == "error"), "")
            is_unreadable = made.is_empty and (bool(said) or not found.st_size)
            trouble = (said or f"{self.path} is empty") if is_unreadable else ""
            if stamp != self._stamp:
                for finding in made.findings:
                    if finding.severity == "warning" or made.is_empty:
                        log.warning("%s", finding)
            self._stamp, self.trouble = stamp, trouble
            self._read = self._read if trouble else made
        return self._read


def read_hermes_config(path: Path) -> HermesHooks:
    """Read the file as it is now, in safe mode, too."""
    tree = read_yaml(path, FILE_LIMIT, name=str(path))
    findings = list(tree.findings)
    root = tree.root if isinstance(tree.root, YamlMapping) else YamlMapping(SourceLocation(str(path)))
    plugins, hooks = _get_section(root, "plugins"), _get_section(root, "hooks")
    entries = to_plain(_get_section(plugins, "entries"))
    return HermesHooks(
        enabled=frozenset(_get_words(plugins.get("enabled"))),
        disabled=frozenset(_get_words(plugins.get("disabled"))),
        entries={str(name): entry for name, entry in entries.items() if isinstance(entry, dict)},
        shell=tuple(_read_shell_entries(hooks, findings)),
        outbound=tuple(_read_outbound_entries(hooks, findings)),
        findings=tuple(findings),
    )


def _read_shell_entries(hooks: YamlMapping, findings: list[Finding]) -> Iterator[ShellEntry]:
    for key, node in hooks.pairs:
        if key.text == OUTBOUND_KEY or not isinstance(node, YamlSequence):
            continue
        for item in node.items:
            command = get_text(item, "command")
            if not command:
                remedy = "write - command: ~/my-script.sh"
                findings.append(Finding(item.place, f"this hook at {key.text} has no command", remedy, "warning"))
                continue
            timeout = _read_timeout(item, SHELL_TIMEOUT, LONGEST_SHELL_TIMEOUT, findings)
            closed = get_text(item, "fail_closed").lower() in ("true", "yes", "on")
            yield ShellEntry(key.text, command, get_text(item, "matcher"), timeout, closed)


def _read_outbound_entries(hooks: YamlMapping, findings: list[Finding]) -> Iterator[OutboundEntry]:
    node = hooks.get(OUTBOUND_KEY)
    for item in node.items if isinstance(node, YamlSequence) else ():
        url, events = get_text(item, "url"), _get_words(item.get("events") if isinstance(item, YamlMapping) else None)
        if not url or not events:
            remedy = "write - url: https://... and events: [post_tool_call]"
            findings.append(Finding(item.place, "this webhook has no url, or no events", remedy, "warning"))
            continue
        timeout = _read_timeout(item, WEBHOOK_TIMEOUT, LONGEST_WEBHOOK_TIMEOUT, findings)
        yield OutboundEntry(url, tuple(events), get_text(item, "matcher"), get_text(item, "secret_env"), timeout)


def _read_timeout(item: YamlNode, default: float, longest: float, findings: list[Finding]) -> float:
    written = get_text(item, "timeout")
    if not written:
        return default
    seconds = as_float(written) or 0.0
    if seconds <= 0:
        what = f"`timeout: {written[:40]}` is not a number of seconds above 0; it is {default:g}"
        findings.append(Finding(item.place, what, f"write timeout: {default:g}", "warning"))
        return default
    return min(seconds, longest)


def get_items(node: YamlNode | None) -> tuple[YamlNode, ...]:
    """Return the items of a list; any other node is the only item of a list, and None is not an item."""
    return node.items if isinstance(node, YamlSequence) else () if node is None else (node,)


def _get_section(root: YamlNode | None, key: str) -> YamlMapping:
    found = root.get(key) if isinstance(root, YamlMapping) else None
    return found if isinstance(found, YamlMapping) else YamlMapping(SourceLocation(""))


def _get_words(node: YamlNode | None) -> list[str]:
    return [item.text for item in get_items(node) if isinstance(item, YamlScalar) and item.text]


def get_text(node: YamlNode, key: str) -> str:
    found = node.get(key) if isinstance(node, YamlMapping) else None
    return found.text.strip() if isinstance(found, YamlScalar) else ""
