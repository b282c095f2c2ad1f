"""Checks of tools: calls that run without a question, their sandbox, and the places that they reach."""

import ipaddress
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from gateway.agent.toolbox.key_homes import list_key_homes
from gateway.cli.doctor import check_roots, check_sandbox
from gateway.cli.security.target import AuditFault, AuditTarget, as_faults, make_check

# Programs that run any given command, or the content of a file that the agent may write.
RUNS_OTHERS = frozenset({
    "sh", "bash", "dash", "zsh", "fish", "python", "python3", "perl", "ruby", "node", "deno", "bun", "php",
    "lua", "awk", "env", "xargs", "sudo", "doas", "su", "ssh", "nohup", "timeout", "make", "cmake", "npm", "npx",
    "yarn", "pnpm", "pip", "uv", "uvx", "cargo", "go", "docker", "podman", "systemctl", "crontab", "at", "vim",
    "vi", "emacs", "tar", "find",
})  # fmt: skip


@make_check("tools.shell-unasked", "error", "any text that persuades the model to run a command is enough")
def _find_shell_unasked(target: AuditTarget) -> Iterator[AuditFault]:
    if target.settings.tools.shell == "allow":
        yield AuditFault(target.place_of("tools.shell"), "every command runs without a question", "tools: {shell: ask}")


@make_check("tools.shell-allow", "error", "such a rule has the same effect as no question")
def _find_shell_rules(target: AuditTarget) -> Iterator[AuditFault]:
    rules = [rule for rule in target.settings.tools.shell_allow if isinstance(rule, dict)]
    for name in sorted({name for rule in rules for name in rule} & RUNS_OTHERS):
        what = f"{name} runs unasked, and runs code of files that the agent can write"
        remedy = f"take {name} out of tools.shell_allow, so that it asks"
        yield AuditFault(target.place_of("tools.shell_allow"), what, remedy)


@make_check("tools.sandbox-off", "warning", "a command reads your keys and the gateway's home")
def _find_sandbox_off(target: AuditTarget) -> Iterator[AuditFault]:
    tools = target.settings.tools
    if tools.shell != "off" and tools.sandbox.mode == "off" and not tools.sandbox.command:
        what = "commands of the agent run outside any sandbox"
        yield AuditFault(target.place_of("tools.sandbox.mode"), what, "tools: {sandbox: {mode: auto}}")


@make_check("tools.sandbox-missing", "warning", "the kernel enforces less than the settings say")
def _find_sandbox_missing(target: AuditTarget) -> Iterator[AuditFault]:
    yield from as_faults(check_sandbox(target.doctor))


@make_check("tools.sandbox-sockets", "error", "such a socket (Docker, an ssh agent) leads out")
def _find_sandbox_sockets(target: AuditTarget) -> Iterator[AuditFault]:
    if target.settings.tools.sandbox.sockets:
        what = "commands of the agent reach sockets of other programs"
        yield AuditFault(target.place_of("tools.sandbox.sockets"), what, "tools: {sandbox: {sockets: false}}")


@make_check("tools.keys-given", "warning", "a command can read or plant keys")
def _find_keys_given(target: AuditTarget) -> Iterator[AuditFault]:
    sandbox, keys = target.settings.tools.sandbox, _list_keys(target)
    own = (target.home.root, *target.home.root.parents)  # folders below these need not be keys
    for key in ("read", "write"):
        for written in getattr(sandbox, key):
            path = target.home.path(written).resolve()
            if any(place.is_relative_to(path) or (place not in own and path.is_relative_to(place)) for place in keys):
                what = f"commands of the agent may {key} {written}, which contains keys"
                remedy = f"take it out of tools.sandbox.{key}, or name a folder below it"
                yield AuditFault(target.place_of(f"tools.sandbox.{key}"), what, remedy)


@make_check("tools.wide-roots", "error", "the agent could change its own instructions")
def _find_wide_roots(target: AuditTarget) -> Iterator[AuditFault]:
    yield from as_faults(check_roots(target.doctor))


def _list_keys(target: AuditTarget) -> tuple[Path, ...]:
    return (target.home.root, *list_key_homes({"HOME": str(target.person)}))


@make_check("tools.inner-hosts", "warning", "a page can have the agent ask services inside")
def _find_inner_hosts(target: AuditTarget) -> Iterator[AuditFault]:
    for host in target.settings.tools.fetch_hosts:
        what = f"the web tool reaches {host} on this machine or network"
        remedy = f"take {host} out of tools.fetch_hosts"
        yield AuditFault(target.place_of("tools.fetch_hosts"), what, remedy)


@make_check("mcp.trust-all", "error", "tools that act do so on a model's word alone")
def _find_trusted_servers(target: AuditTarget) -> Iterator[AuditFault]:
    for name, server in target.settings.mcp_servers.items():
        if server.enabled and server.trust == "all":
            what = f"every tool of {name} runs without a question"
            remedy = f"mcp_servers: {{{name}: {{trust: read}}}}, and the tools that you know under `allow`"
            yield AuditFault(target.place_of(f"mcp_servers.{name}.trust"), what, remedy)


@make_check("mcp.plain-http", "warning", "anyone on the network path can read and change it")
def _find_plain_servers(target: AuditTarget) -> Iterator[AuditFault]:
    for name, server in target.settings.mcp_servers.items():
        if server.enabled and is_plain_http(server.url):
            what = f"what is said to {name} and what it answers can be read and changed on the way"
            remedy = f"write https:// in mcp_servers.{name}.url"
            yield AuditFault(target.place_of(f"mcp_servers.{name}.url"), what, remedy)


@make_check("models.plain-http", "warning", "anyone on the network path can read and change it")
def _find_plain_models(target: AuditTarget) -> Iterator[AuditFault]:
    models = {f"models.{key}": one for key, one in target.settings.models.items()}
    for name, model in {"model": target.settings.model, **models}.items():
        if is_plain_http(model.base_url):
            what = "conversations and the key go over the network unencrypted"
            yield AuditFault(target.place_of(f"{name}.base_url"), what, f"write https:// in {name}.base_url")


def is_plain_http(url: str) -> bool:
    """Return True for an address of plain HTTP on another machine."""
    try:
        found = urlsplit(url)
        host = found.hostname or ""
    except ValueError:
        return False
    if found.scheme != "http" or host == "localhost":
        return False
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return True
