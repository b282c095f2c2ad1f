"""What a type cannot say: ids that are ids, names that mean something, tokens where a network is switched on.

Each check looks at the settings and at the tree that they came from, so that it can say where.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from gateway.config.node_paths import find_node
from gateway.config.platform_settings import PlatformSettings, PlatformSpec
from gateway.config.providers import PROVIDERS
from gateway.config.schema import SettingsSchema
from gateway.config.settings import MAIN, ModelSettings, Settings
from gateway.config.shell_presets import PRESETS
from gateway.yaml_source import Finding, Severity, SourceLocation, YamlNode, YamlSequence
from gateway.yaml_source.tree import to_printable

_ID_LISTS = ("owners", "admins", "users", "group_users", "chats")

_PROGRAM_NAME = re.compile(r"[a-z][a-z0-9_.+-]{0,20}")
_REMEDY = "write the id that never changes; a name can be given up, and taken over by somebody else"


def find_invalid_ids(
    tree: YamlNode, platforms: Mapping[str, PlatformSpec]
) -> Iterator[tuple[tuple[str, ...], YamlSequence, Finding]]:
    """Entries of allow lists that are no ids: the list, what remains of it, and the finding."""
    for kind in _ID_LISTS:
        patterns = {name: spec.chat_id if kind == "chats" else spec.user_id for name, spec in platforms.items()}
        patterns["all"] = "|".join(patterns.values())
        for platform, pattern in patterns.items():
            path = ("access", kind, platform)
            node = find_node(tree, path)
            if not isinstance(node, YamlSequence):
                continue
            good = tuple(item for item in node.items if re.fullmatch(pattern, getattr(item, "text", "")))
            for at, item in enumerate(node.items, 1):
                if item not in good:
                    what = f"entry {at} of `{'.'.join(path)}` is no id"
                    yield path, YamlSequence(node.place, good), Finding(item.place, what, _REMEDY)


def check_settings(settings: Settings, tree: YamlNode, schema: SettingsSchema) -> Iterator[Finding]:
    """What is wrong with settings that are each right by themselves."""
    yield from _check_models(settings, tree)
    yield from _check_agents(settings, tree)
    yield from _check_platforms(settings, tree, schema)
    yield from _check_shell_rules(settings, tree)
    yield from find_open_networks(settings, _find_nearest_place(tree, ("access", "everybody")))


def find_open_networks(settings: Settings, place: SourceLocation) -> Iterator[Finding]:
    """Those on which everybody may speak; `place` is where that is said."""
    for network in settings.access.everybody:
        what = f"everybody on {network} may speak to the gateway"
        yield Finding(place, what, "list ids under `access.users` instead", "warning")


def _check_shell_rules(settings: Settings, tree: YamlNode) -> Iterator[Finding]:
    listed = {name for rule in settings.tools.shell_allow if isinstance(rule, dict) for name in rule}
    for at, rule in enumerate(settings.tools.shell_allow, 1):
        if isinstance(rule, str) and rule not in PRESETS and rule not in listed:
            name = rule if _PROGRAM_NAME.fullmatch(rule) else "NAME"
            what = f"entry {at} of `tools.shell_allow` names no program whose harmless use is known here: it asks"
            remedy = f"list the arguments that it may have, for instance: shell_allow: [{{{name}: [--version]}}]"
            yield Finding(_find_nearest_place(tree, ("tools", "shell_allow")), what, remedy, "warning")


def _check_models(settings: Settings, tree: YamlNode) -> Iterator[Finding]:
    for path, model in (
        (("model",), settings.model),
        *((("models", name), one) for name, one in settings.models.items()),
    ):
        if model.provider != "demo" and not model.name:
            what = f"`{'.'.join(path)}` names a provider and no model"
            yield Finding(
                _find_nearest_place(tree, path), what, "add `name: ...`, as the provider calls it, or set HERMES_MODEL"
            )
        yield from _check_key(model, tree, path)
        if set(model.fallbacks) - set(settings.models):
            yield _make_unknown_name_finding(tree, (*path, "fallbacks"), settings.models)


def _check_key(model: ModelSettings, tree: YamlNode, path: tuple[str, ...]) -> Iterator[Finding]:
    """An endpoint of one's own may want no key; and where the gateway is started, there may be one after all."""
    offer = PROVIDERS.get(model.provider)
    if offer and offer.key_variable and model.base_url == offer.base_url and not model.api_key:
        what = f"`{'.'.join(path)}` has no key for {model.provider}"
        yield Finding(_find_nearest_place(tree, path), what, f"write {offer.key_variable}=... into .env", "warning")


def _check_agents(settings: Settings, tree: YamlNode) -> Iterator[Finding]:
    known = {MAIN, *settings.agents}
    for name, agent in settings.agents.items():
        if agent.model and agent.model not in settings.models:
            yield _make_unknown_name_finding(tree, ("agents", name, "model"), settings.models)
        if set(agent.agents) - known:
            yield _make_unknown_name_finding(tree, ("agents", name, "agents"), known)
        if name in agent.agents:
            place = _find_nearest_place(tree, ("agents", name, "agents"))
            yield Finding(place, f"the agent `{to_printable(name)}` lists itself", "remove it from its `agents`")
    if any(route.agent not in known for route in settings.routes):
        yield _make_unknown_name_finding(tree, ("routes",), known)


def _check_platforms(settings: Settings, tree: YamlNode, schema: SettingsSchema) -> Iterator[Finding]:
    """A network that is switched on lacks a token, or has one of several."""
    variables = dict(schema.list_platform_secrets())
    for network in schema.platforms:
        section: PlatformSettings = getattr(settings.platforms, network)
        missing = [variables["platforms", network, token] for token in section.missing_tokens]
        is_begun = len(missing) < sum(name.endswith("token") for name in section.__struct_fields__)
        if section.enabled is False or not missing or not (section.enabled or is_begun):
            continue
        severity: Severity = "error" if section.enabled else "warning"
        place = _find_nearest_place(tree, ("platforms", network, "enabled"))
        what = f"{network} cannot be used: {' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not set"
        yield Finding(place, what, f"run: hermes-gateway setup {network}, or write it into .env", severity)


def _find_nearest_place(tree: YamlNode, path: tuple[str, ...]) -> SourceLocation:
    """The place of what stands under these keys, or of what stands nearest above."""
    for length in range(len(path), 0, -1):
        node = find_node(tree, path[:length])
        if node is not None:
            return node.place
    return tree.place


def _make_unknown_name_finding(tree: YamlNode, path: tuple[str, ...], known: Iterable[str]) -> Finding:
    """A setting that names what nobody defined. The name is not repeated: it may be a value in the wrong place."""
    listed = ", ".join(f"`{to_printable(one)}`" for one in sorted(known)) or "none"
    what = f"`{to_printable('.'.join(path), 200)}` names what is not there"
    return Finding(_find_nearest_place(tree, path), what, f"define it, or use one of those there are: {listed}")
