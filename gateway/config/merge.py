"""Merge all sources into one tree: each value comes from the strongest source, and keeps that source's place.

    config.yaml, as a tree
       │  remove the settings of earlier versions         a warning each
       │  `hooks.NAME` becomes `hooks.each.NAME`
       │  add the accounts that a variable names
       │  remove unknown settings of unloaded networks
       │  replace ${NAME} in secrets                      an error for a secret in the file
       ▼
    variables: Hermes's, then ours, then those of each account
       │  add the networks open to everybody
       ▼
    command line (`chosen`)
       │  report the variables without an effect          a warning each
       │  clean the ids of people; `all` joins each network's
       │  fill in a provider, and each model's address and key
       ▼
    the tree, from which `loading` makes the settings

A later source replaces the values of an earlier one. Each step takes the tree and returns a changed one; it adds its
errors and warnings to the findings.
"""

import difflib
from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from gateway.config.checks import find_invalid_ids
from gateway.config.environment import Environment, SourcedValue, expand_references, find_references
from gateway.config.providers import PROVIDERS, find_provider
from gateway.config.schema import FORMER_SETTINGS, PREFIX, SettingsSchema, SettingVariable, describe_former
from gateway.config.settings import HooksSettings
from gateway.yaml_source.node_paths import KeyPath, find_node, node_of, put_node, remove_node
from gateway.yaml_source.tree import (
    Finding,
    Severity,
    SourceLocation,
    YamlMapping,
    YamlNode,
    YamlScalar,
    YamlSequence,
    as_bool,
)

COMMAND_LINE = SourceLocation("the command line")
DEFAULT = SourceLocation("default")


def merge_sources(
    schema: SettingsSchema, root: YamlNode, outside: Environment, chosen: Mapping[str, str], findings: list[Finding]
) -> YamlNode:
    """Return the file's tree with the values of all stronger sources."""
    tree = _leave_out_former(root, findings)
    tree = _leave_out_unknown(schema, _name_accounts(schema, _expand_hook_shorthand(tree), outside))
    tree = _expand_secrets(schema, tree, outside, findings)
    shapes = {".".join(name.path): name.shape for name in schema.own_variables}
    for name in (*schema.hermes_variables, *schema.own_variables, *_list_account_variables(schema, tree)):
        if value := outside.values.get(name.variable):
            tree = put_node(tree, name.path, node_of(value.text, value.place, name.shape))
    tree = _apply_allow_all(schema, tree, outside, findings)
    for dotted, text in chosen.items():
        node = node_of(text, COMMAND_LINE, shapes.get(dotted, "text"))
        tree = put_node(tree, tuple(dotted.split(".")), node)
    findings += _check_unused_variables(schema, tree, outside)
    return _fill_in_models(_clean_ids(schema, tree, root.place.source, findings), outside, findings)


def _leave_out_former(tree: YamlNode, findings: list[Finding]) -> YamlNode:
    """Remove the settings of earlier versions, with a warning."""
    for path in FORMER_SETTINGS:
        section = find_node(tree, path[:-1])
        if isinstance(section, YamlMapping) and (key := section.key(path[-1])):
            findings.append(Finding(key.place, describe_former(path), "remove it", "warning"))
            tree = remove_node(tree, path)
    return tree


def _expand_hook_shorthand(tree: YamlNode) -> YamlNode:
    """Expand `hooks.<name>` to `hooks.each.<name>`, if the name is not a setting and its value a mapping."""
    section = find_node(tree, ("hooks",))
    for key, node in section.pairs if isinstance(section, YamlMapping) else ():
        if key.text not in HooksSettings.__struct_fields__ and isinstance(node, YamlMapping):
            tree = put_node(remove_node(tree, ("hooks", key.text)), ("hooks", "each", key.text), node)
    return tree


def _name_accounts(schema: SettingsSchema, tree: YamlNode, outside: Environment) -> YamlNode:
    """Add accounts that a variable names, even if the file does not mention them."""
    for platform, variable in schema.account_lists.items():
        if (value := outside.values.get(variable)) is not None:
            for name in value.text.replace(",", " ").split():
                path = ("platforms", platform, "accounts", name)
                if find_node(tree, path) is None:
                    tree = put_node(tree, path, YamlMapping(value.place))
    return tree


def _list_accounts(schema: SettingsSchema, tree: YamlNode) -> Iterator[tuple[str, str]]:
    for platform in schema.platforms:
        for account in _list_keys(tree, "platforms", platform, "accounts"):
            yield platform, account


def _list_account_variables(schema: SettingsSchema, tree: YamlNode) -> Iterator[SettingVariable]:
    for platform, account in _list_accounts(schema, tree):
        yield from schema.list_account_variables(platform, account)


def _leave_out_unknown(schema: SettingsSchema, tree: YamlNode) -> YamlNode:
    """Remove all but the common settings from networks whose code is not loaded."""
    for network in schema.unknown:
        known = schema.platforms[network].settings.__struct_fields__
        for key in _list_keys(tree, "platforms", network):
            tree = tree if key in known else remove_node(tree, ("platforms", network, key))
    return tree


def _expand_secrets(schema: SettingsSchema, tree: YamlNode, outside: Environment, findings: list[Finding]) -> YamlNode:
    """Replace `${NAME}` in secrets by the variable's value; a secret in the file itself is an error."""
    environ = outside.environ
    for path, variable in list_secret_paths(schema, tree):
        node = find_node(tree, path)
        if not isinstance(node, YamlScalar):
            continue
        dotted = ".".join(path)
        if variable and "${" not in node.text and node.text:
            remedy = f"write {variable}=... into .env, and ${{{variable}}} here"
            findings.append(Finding(node.place, f"`{dotted}` is a secret, and does not belong into this file", remedy))
        for name in find_references(node.text):
            if not environ.get(name):
                what = f"`{dotted}` needs the variable {name}, which is not set"
                findings.append(Finding(node.place, what, f"write {name}=... into .env", "warning"))
        tree = put_node(tree, path, YamlScalar(node.place, expand_references(node.text, environ), quoted=True))
    return tree


def list_secret_paths(schema: SettingsSchema, tree: YamlNode) -> Iterator[tuple[KeyPath, str]]:
    """Yield the paths of secrets with their variables; "" if the value need not be a secret."""
    for platform in schema.platforms:
        yield from schema.list_platform_secrets(platform)
    for platform, account in _list_accounts(schema, tree):
        yield from schema.list_platform_secrets(platform, account)
    yield ("model", "api_key"), "GATEWAY_MODEL_API_KEY"
    yield ("tools", "search", "key"), "GATEWAY_TOOLS_SEARCH_KEY"
    for name in _list_keys(tree, "models"):
        yield ("models", name, "api_key"), "MODEL_API_KEY"
    for name in _list_keys(tree, "mcp_servers"):
        for part in ("env", "headers"):
            for key in _list_keys(tree, "mcp_servers", name, part):
                yield ("mcp_servers", name, part, key), ""


def _list_keys(tree: YamlNode, *path: str) -> tuple[str, ...]:
    node = find_node(tree, path)
    return tuple(node) if isinstance(node, YamlMapping) else ()


def _apply_allow_all(schema: SettingsSchema, tree: YamlNode, outside: Environment, findings: list[Finding]) -> YamlNode:
    opened: dict[str, SourceLocation] = {}
    for variable, networks in schema.allow_all_variables.items():
        value = outside.values.get(variable)
        if value and (value.text == "1" or as_bool(value.text)):
            opened |= dict.fromkeys(networks, value.place)
        elif value and value.text != "0" and as_bool(value.text) is None:
            findings.append(Finding(value.place, "is neither true nor false", "write true or false", "warning"))
    if not opened:
        return tree
    items = tuple(YamlScalar(place, network) for network, place in opened.items())
    before = find_node(tree, ("access", "everybody"))
    kept = before.items if isinstance(before, YamlSequence) else ()
    return put_node(tree, ("access", "everybody"), YamlSequence(items[0].place, (*kept, *items)))


def _clean_ids(schema: SettingsSchema, tree: YamlNode, file: str, findings: list[Finding]) -> YamlNode:
    """Remove invalid ids, with an error in our file and a warning in Hermes's; add `all` to each network."""
    for path, kept, finding in find_invalid_ids(tree, schema.platforms):
        severity: Severity = "error" if finding.place.source == file else "warning"
        findings.append(replace(finding, severity=severity))
        tree = put_node(tree, path, kept)
    for kind in _list_keys(tree, "access"):
        everywhere = find_node(tree, ("access", kind, "all"))
        if isinstance(everywhere, YamlSequence):
            for network in schema.platforms:
                own = find_node(tree, ("access", kind, network))
                items = own.items if isinstance(own, YamlSequence) else ()
                tree = put_node(
                    tree, ("access", kind, network), YamlSequence(everywhere.place, (*items, *everywhere.items))
                )
    return tree


def _fill_in_models(tree: YamlNode, outside: Environment, findings: list[Finding]) -> YamlNode:
    """Fill in a missing provider, and then each model's missing address and key."""
    tree = _fill_in_provider(tree, outside, findings)
    for path in (("model",), *(("models", name) for name in _list_keys(tree, "models"))):
        provider = find_node(tree, (*path, "provider"))
        offer = PROVIDERS.get(provider.text) if isinstance(provider, YamlScalar) else None
        if offer is None:
            continue
        for setting, variable, otherwise in (
            ("base_url", offer.url_variable, offer.base_url),
            ("api_key", offer.key_variable, ""),
        ):
            value = outside.values.get(variable) or SourcedValue(otherwise, DEFAULT)
            if value.text and find_node(tree, (*path, setting)) is None:
                tree = put_node(tree, (*path, setting), YamlScalar(value.place, value.text, quoted=True))
    return tree


def _fill_in_provider(tree: YamlNode, outside: Environment, findings: list[Finding]) -> YamlNode:
    name = find_node(tree, ("model", "name"))
    if find_node(tree, ("model", "provider")) is not None:
        return tree
    provider, variable = find_provider(outside.environ)
    if provider and name is not None:
        return put_node(tree, ("model", "provider"), YamlScalar(outside.values[variable].place, provider))
    if provider:
        there = f"there is {variable}, but no model is named"
        findings.append(_make_demo_finding(outside.values[variable].place, there))
    elif name is not None:
        findings.append(_make_demo_finding(name.place, "a model is named, but nothing says who offers it"))
    return tree


def _make_demo_finding(place: SourceLocation, because: str) -> Finding:
    remedy = "set `model.provider` and `model.name`"
    return Finding(place, f"the built-in demo model answers: {because}", remedy, "warning")


def _check_unused_variables(schema: SettingsSchema, tree: YamlNode, outside: Environment) -> Iterator[Finding]:
    """Yield a warning for each variable that has no effect."""
    for variable, reason in schema.unsupported_variables.items():
        if variable in outside.values:
            yield Finding(outside.values[variable].place, reason, "remove it, if nothing else needs it", "warning")
    named = (*schema.own_variables, *schema.hermes_variables, *_list_account_variables(schema, tree))
    known = {*(name.variable for name in named), *schema.allow_all_variables, *schema.account_lists.values()}
    for variable in outside.values:
        close = difflib.get_close_matches(variable, known, n=1, cutoff=0.85) if variable.startswith(PREFIX) else []
        if close and variable not in known:
            place = outside.values[variable].place
            yield Finding(place, f"{variable[:60]} means nothing", f"did you mean {close[0]}?", "warning")
