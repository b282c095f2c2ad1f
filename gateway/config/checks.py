"""Checks of settings that a type cannot express: valid ids, names that exist, tokens for networks that are switched on.

Each check looks at the settings and at the tree that they came from, so that a finding has its place.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from ipaddress import ip_network

from gateway.config.fields import WEB_NAME_PATTERN
from gateway.config.platform_settings import ACCOUNT_NAME, PlatformSpec, list_accounts
from gateway.config.providers import DEMO, PROVIDERS
from gateway.config.schema import SettingsSchema
from gateway.config.settings import MAIN, AccessSettings, ModelSettings, Settings, WebSettings
from gateway.config.shell_presets import PRESETS
from gateway.config.webhooks import WEBHOOK_NAME, parse_template
from gateway.yaml_source.addresses import split_address
from gateway.yaml_source.node_paths import find_node
from gateway.yaml_source.timetable import parse_timetable
from gateway.yaml_source.tree import Finding, Severity, SourceLocation, YamlNode, YamlSequence, to_printable

_ID_LISTS = ("owners", "admins", "users", "group_users", "chats")

_PROGRAM_NAME = re.compile(r"[a-z][a-z0-9_.+-]{0,20}")
_HOST_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,250}[A-Za-z0-9])?|\[[0-9A-Fa-f:]+\]")
_TAKEN_HEADERS = frozenset(
    {"host", "cookie", "origin", "authorization", "x-token", "x-forwarded-for", "content-type", "content-length"}
)
_PAYERS = ("api", "hook", "terminal", "web", "webhook")  # who else may be charged than people on networks
_REMEDY = "write the id that never changes; another person can take over a name"


def find_invalid_ids(
    tree: YamlNode, platforms: Mapping[str, PlatformSpec]
) -> Iterator[tuple[tuple[str, ...], YamlSequence, Finding]]:
    """Yield the entries of allow lists that are not ids: the list, its valid rest, and the finding."""
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
                    what = f"entry {at} of `{'.'.join(path)}` is not an id"
                    yield path, YamlSequence(node.place, good), Finding(item.place, what, _REMEDY)


def check_settings(settings: Settings, tree: YamlNode, schema: SettingsSchema) -> Iterator[Finding]:
    """Yield the faults of settings that are each valid by themselves."""
    yield from _check_zone(settings.gateway.timezone, tree)
    yield from _check_schedules(settings, tree)
    yield from _check_models(settings, tree)
    yield from _check_agents(settings, tree)
    yield from _check_chats(settings, tree, schema.platforms)
    yield from _check_voice(settings, tree)
    yield from _check_accounts(settings, tree, schema)
    yield from _check_platforms(settings, tree, schema)
    yield from _check_shell_rules(settings, tree)
    yield from _check_web(settings.web, tree)
    yield from _check_groups(settings.access, tree, schema.platforms)
    yield from _check_budgets(settings, tree, schema.platforms)
    yield from _check_webhooks(settings, tree)
    yield from _check_webhook_places(settings, tree, schema.platforms)
    yield from find_open_networks(settings, _find_nearest_place(tree, ("access", "everybody")))


def find_open_networks(settings: Settings, place: SourceLocation) -> Iterator[Finding]:
    """Yield the networks on which everybody may speak; `place` is where the setting that says so was written."""
    for network in settings.access.everybody:
        what = f"everybody on {network} may speak to the gateway"
        yield Finding(place, what, "list ids under `access.users` instead", "warning")


def _check_groups(access: AccessSettings, tree: YamlNode, platforms: Mapping[str, PlatformSpec]) -> Iterator[Finding]:
    """Check that groups name people by ids that never change, and that each person is in one group only."""
    patterns = {name: spec.user_id for name, spec in platforms.items()} | {"web": WEB_NAME_PATTERN}
    seen: dict[str, str] = {}
    for name, group in access.groups.items():
        path = ("access", "groups", name, "people")
        node = find_node(tree, path)
        places = [one.place for one in node.items] if isinstance(node, YamlSequence) else []
        for at, (person, place) in enumerate(zip(group.people, places, strict=False), 1):
            what = f"entry {at} of `{to_printable('.'.join(path), 200)}`"
            platform, colon, user = person.partition(":")
            if not colon or platform not in patterns:
                networks = ", ".join(sorted(patterns))
                yield Finding(place, f"{what} does not begin with a network", f"write NETWORK:ID, of {networks}")
            elif not re.fullmatch(patterns[platform], user):
                yield Finding(place, f"{what} is not an id", _REMEDY)
            elif person in seen:
                remedy = f"leave them in one; they are in `{to_printable(seen[person])}` already"
                yield Finding(place, f"{what} is in a group before", remedy)
            else:
                seen[person] = name


def _check_budgets(settings: Settings, tree: YamlNode, platforms: Mapping[str, PlatformSpec]) -> Iterator[Finding]:
    """Check that budgets name people by their ids, and existing groups."""
    networks = (*sorted(platforms), *_PAYERS)
    for person in settings.budgets.people:
        platform, colon, _ = person.partition(":")
        if not colon or platform not in networks:
            what = f"`budgets.people.{to_printable(person, 100)}` is not an id"
            remedy = f"write NETWORK:ID as `hermes-gateway usage` does, of {', '.join(networks)}"
            yield _make_finding(tree, ("budgets", "people", person), what, remedy)
    for group in settings.budgets.groups:
        yield from _find_unknown(tree, ("budgets", "groups", group), [group], settings.access.groups)


def _check_shell_rules(settings: Settings, tree: YamlNode) -> Iterator[Finding]:
    listed = {name for rule in settings.tools.shell_allow if isinstance(rule, dict) for name in rule}
    for at, rule in enumerate(settings.tools.shell_allow, 1):
        if isinstance(rule, str) and rule not in PRESETS and rule not in listed:
            name = rule if _PROGRAM_NAME.fullmatch(rule) else "NAME"
            what = f"entry {at} of `tools.shell_allow` names no program whose harmless use is known here: it asks"
            remedy = f"list the arguments that it may have, for instance: shell_allow: [{{{name}: [--version]}}]"
            yield _make_finding(tree, ("tools", "shell_allow"), what, remedy, "warning")


def _check_zone(name: str, tree: YamlNode) -> Iterator[Finding]:
    if not name:
        return
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # noqa: PLC0415 - few name one, and each start would load it

    try:
        ZoneInfo(name)
    except (ValueError, OSError, ZoneInfoNotFoundError):
        what = "`gateway.timezone` names no time zone"
        yield _make_finding(tree, ("gateway", "timezone"), what, "write a name such as Europe/Berlin, or UTC")


def _check_web(web: WebSettings, tree: YamlNode) -> Iterator[Finding]:
    """Check that a port that others can reach has TLS, or a proxy that has it."""

    def find(key: str, what: str, remedy: str) -> Finding:
        return _make_finding(tree, ("web", *key.split(".", 1)), f"`web.{key}` {what}", remedy)

    try:
        address, _ = split_address(web.listen)
        is_safe = address.is_loopback or bool(web.tls.cert or web.trusted_proxies)
    except ValueError:
        yield find("listen", "is not an IP address with a port", "write for instance 127.0.0.1:8730, or [::1]:8730")
    else:
        if not is_safe:
            remedy = "write 127.0.0.1:PORT, or set `web.tls`, or `web.trusted_proxies` and have a proxy speak TLS"
            yield find("listen", "can be reached from elsewhere, and what is said there can be read", remedy)
    if bool(web.tls.cert) != bool(web.tls.key):
        given, lacks = ("cert", "key") if web.tls.cert else ("key", "cert")
        yield find(f"tls.{given}", f"is set without `{lacks}`", "write both: the files of the certificate and its key")
    if not all(map(_is_network, web.trusted_proxies)):
        yield find("trusted_proxies", "names what is not an IP address", "write some such as 10.0.0.2 or 10.0.0.0/24")
    yield from (find(*one) for one in _find_identity_faults(web))
    if not all(map(_HOST_NAME.fullmatch, web.hosts)):
        yield find(
            "hosts", "names what is not a host", "write names such as gateway.example.org, without http:// and port"
        )


def _check_webhooks(settings: Settings, tree: YamlNode) -> Iterator[Finding]:
    """Check the addresses and templates of webhooks, and that no setting lacks the one it depends on."""
    for name, webhook in settings.webhooks.items():
        path = ("webhooks", name)
        if not WEBHOOK_NAME.fullmatch(name):
            what = f"`webhooks` has the name `{to_printable(name)}`, which cannot be part of an address"
            yield _make_finding(tree, path, what, "write letters, digits, - and _, 64 at the most")
        try:
            parse_template(webhook.template)
        except ValueError as error:
            remedy = "write {issue.title} for that value, and {{ for a brace"
            what = f"`webhooks.{to_printable(name)}.template` {error}"
            yield _make_finding(tree, (*path, "template"), what, remedy)
        for key in ("when", "session", "agent", "as"):
            if not webhook.template and find_node(tree, (*path, key)) is not None:
                what = f"`webhooks.{to_printable(name)}.{key}` means nothing without `template`"
                yield _make_finding(tree, (*path, key), what, "add a `template`, or remove it")
        yield from _find_unknown(tree, (*path, "agent"), filter(None, [webhook.agent]), {MAIN, *settings.agents})


def _check_schedules(settings: Settings, tree: YamlNode) -> Iterator[Finding]:
    """Check the timetables that the configuration gives to hooks."""
    for name, hook in settings.hooks.each.items():
        try:
            if hook.schedule:
                parse_timetable(hook.schedule)
        except ValueError as error:
            what = f"`hooks.{to_printable(name)}.schedule` {error}"
            yield _make_finding(tree, ("hooks", name, "schedule"), what, "write `0 9 * * 1-5`, @daily or every 15m")


def _check_webhook_places(
    settings: Settings, tree: YamlNode, platforms: Mapping[str, PlatformSpec]
) -> Iterator[Finding]:
    """Check that a webhook's agent answers to a known network; any other answer would be lost."""
    known = {*platforms, "terminal", "web", "home", "agent"}
    for name, webhook in settings.webhooks.items():
        network = webhook.session.partition(":")[0]
        if webhook.session and network not in known:
            what = f"`webhooks.{to_printable(name)}.session` begins with no network: {to_printable(network, 60)}"
            remedy = f"write NETWORK:CHAT, of {', '.join(sorted(platforms))}; or home"
            yield _make_finding(tree, ("webhooks", name, "session"), what, remedy, "warning")


def _find_identity_faults(web: WebSettings) -> Iterator[tuple[str, str, str]]:
    """Yield each fault of the settings that identify people behind a proxy: the setting, its fault and the remedy."""
    if web.identity and not web.trusted_proxies:
        remedy = "set `web.trusted_proxies` to the address of the proxy that writes it: only that proxy is trusted"
        yield "identity", "is set without `trusted_proxies`", remedy
    if web.identity.lower() in _TAKEN_HEADERS:
        yield (
            "identity",
            "is a header that says something else",
            "name another, such as X-Forwarded-User",
        )
    networks = [ip_network(written) for written in web.trusted_proxies if _is_network(written)]
    if web.identity and any(one.prefixlen == 0 for one in networks):
        yield "trusted_proxies", "trusts everybody to say who they are", "name the address of the proxy alone"
    if web.people and not web.identity:
        yield "people", "names people, and nothing says who asks", "set `web.identity`, or remove it"
    for name in web.people:
        if name == "owner" or not re.fullmatch(WEB_NAME_PATTERN, name):
            shown = to_printable(name, 60)
            what = "is the person who opens the page by a link of the terminal" if name == "owner" else "is not a name"
            yield f"people.{shown}", what, "write the name that the proxy gives, without a space, a comma and a colon"


def _is_network(written: str) -> bool:
    try:
        ip_network(written)
    except ValueError:
        return False
    return True


def _check_models(settings: Settings, tree: YamlNode) -> Iterator[Finding]:
    for path, model in (
        (("model",), settings.model),
        *((("models", name), one) for name, one in settings.models.items()),
    ):
        if model.provider != DEMO and not model.name:
            what = f"`{'.'.join(path)}` names a provider and no model"
            yield _make_finding(tree, path, what, "add `name: ...`, as the provider calls it, or set HERMES_MODEL")
        yield from _check_key(model, tree, path)
        yield from _find_unknown(tree, (*path, "fallbacks"), model.fallbacks, settings.models)


def _check_key(model: ModelSettings, tree: YamlNode, path: tuple[str, ...]) -> Iterator[Finding]:
    """Warn about a provider's own endpoint without a key; an endpoint of your own may not need one.

    It is only a warning: the environment in which the gateway starts may hold the key.
    """
    offer = PROVIDERS[model.provider]
    if offer.key_variable and model.base_url == offer.base_url and not model.api_key:
        what = f"`{'.'.join(path)}` has no key for {model.provider}"
        yield _make_finding(tree, path, what, f"write {offer.key_variable}=... into .env", "warning")


def _check_voice(settings: Settings, tree: YamlNode) -> Iterator[Finding]:
    """Check that the models that transcribe and speak belong to providers that can handle audio."""
    voice = settings.voice
    for part, name in (("transcribe", voice.transcribe.model), ("speak", voice.speak.model)):
        path = ("voice", part, "model")
        yield from _find_unknown(tree, path, filter(None, [name]), settings.models)
        if name in settings.models and not PROVIDERS[settings.models[name].provider].hears:
            what = f"`models.{to_printable(name)}` cannot {part}"
            yield _make_finding(tree, path, what, "name one of `provider: openai`")


def _check_agents(settings: Settings, tree: YamlNode) -> Iterator[Finding]:
    known = {MAIN, *settings.agents}
    for name, agent in settings.agents.items():
        for what, model in (("model", agent.model), ("vision", agent.vision)):
            yield from _find_unknown(tree, ("agents", name, what), filter(None, [model]), settings.models)
        if agent.vision in settings.models and not settings.models[agent.vision].pictures:
            blind = f"`models.{to_printable(agent.vision)}` has `pictures: false`, and is to describe some"
            yield _make_finding(tree, ("agents", name, "vision"), blind, "name a model that is shown pictures")
        path = ("agents", name, "agents")
        yield from _find_unknown(tree, path, agent.agents, known)
        if name in agent.agents:
            own = f"the agent `{to_printable(name)}` lists itself"
            yield _make_finding(tree, path, own, "remove it from its `agents`")
    yield from _find_unknown(tree, ("routes",), [route.agent for route in settings.routes], known)
    accounts = {one.account for one in list_accounts(settings.platforms) if one.account}
    yield from _find_unknown(tree, ("routes",), filter(None, [route.account for route in settings.routes]), accounts)


def _check_chats(settings: Settings, tree: YamlNode, platforms: Mapping[str, PlatformSpec]) -> Iterator[Finding]:
    """Check that each entry names a possible chat, and an existing agent and model."""
    bots = {one.name: one.platform for one in list_accounts(settings.platforms)}
    for chat, rules in settings.chats.items():
        path = ("chats", chat)
        bot = max((name for name in bots if chat.startswith(f"{name}:")), key=len, default="")
        place, _, thread = chat.removeprefix(f"{bot}:").partition(":")
        if not bot or not re.fullmatch(platforms[bots[bot]].chat_id, place) or (":" in chat and chat.endswith(":")):
            what = f"`chats.{to_printable(chat, 100)}` is not a chat"
            remedy = f"write NETWORK:CHAT or NETWORK:CHAT:THREAD, of {', '.join(sorted(bots))}, with the chat's id"
            yield _make_finding(tree, path, what, remedy)
        if ":" in thread:
            what = f"`chats.{to_printable(chat, 100)}` names more than a thread"
            yield _make_finding(tree, path, what, "write NETWORK:CHAT:THREAD")
        yield from _find_unknown(tree, (*path, "agent"), filter(None, [rules.agent]), {MAIN, *settings.agents})
        yield from _find_unknown(tree, (*path, "model"), filter(None, [rules.model]), settings.models)


def _check_platforms(settings: Settings, tree: YamlNode, schema: SettingsSchema) -> Iterator[Finding]:
    """Check that a network that is switched on has all its tokens, and that no network has only some of them."""
    for one in list_accounts(settings.platforms):
        section, name = one.settings, to_printable(one.name)
        if section.is_called and section.enabled is not False and (why := _why_not_called(settings)):
            what = f"{name} cannot call the gateway: {why}"
            remedy = "set `web.url` to the https address that leads to the port, or take `mode` away"
            yield _make_finding(tree, (*one.path, "mode"), what, remedy)
        variables = dict(schema.list_platform_secrets(one.platform, one.account))
        missing = [variables[*one.path, token] for token in section.missing_tokens]
        is_begun = len(missing) < sum(name.endswith("token") for name in section.__struct_fields__)
        if section.enabled is False or not missing or not (section.enabled or is_begun):
            continue
        severity: Severity = "error" if section.enabled else "warning"
        what = f"{name} cannot be used: {' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not set"
        account = f" --account {to_printable(one.account)}" if one.account else ""
        remedy = f"run: hermes-gateway setup {one.platform}{account}, or write it into .env"
        yield _make_finding(tree, (*one.path, "enabled"), what, remedy, severity)


def _why_not_called(settings: Settings) -> str:
    """Return why no network can call us; empty if it can, or calls another node."""
    if {"ingress", "web"} & {*settings.node.roles} == {"ingress"}:
        return "`node.roles` has `ingress` without `web`"
    if not settings.web.enabled:
        return "`web.enabled` is false"
    return "" if settings.web.url else "`web.url` does not say at which address"


def _check_accounts(settings: Settings, tree: YamlNode, schema: SettingsSchema) -> Iterator[Finding]:
    """Check that each account has a valid name, and a bot of its own."""
    usual = {name.variable for name in (*schema.own_variables, *schema.hermes_variables)}
    seen: dict[tuple[str, str], str] = {}
    for one in list_accounts(settings.platforms):
        place, name = _find_nearest_place(tree, one.path), to_printable(one.name, 100)
        if one.account and not ACCOUNT_NAME.fullmatch(one.account):
            remedy = "write small letters, digits, - and _, the first a letter, 31 at the most; and no type of a chat"
            yield Finding(place, f"`{name}` is not a valid bot name", remedy)
        elif one.account:
            variables = {name.variable for name in schema.list_account_variables(one.platform, one.account)}
            if taken := min(variables & usual, default=""):
                what = f"`{name}` is not a valid bot name: {taken} means something else already"
                yield Finding(place, what, "give it another name")
            usual |= variables
        for shared in one.settings.SHARED if one.account else ():
            if find_node(tree, (*one.path, shared)) is not None:
                what = f"`{'.'.join((*one.path, shared))}` is the same for all bots there"
                yield Finding(place, to_printable(what, 200), f"write it into `platforms.{one.platform}`")
        for path, _ in schema.list_platform_secrets(one.platform, one.account):
            secret = getattr(one.settings, path[-1]).reveal()
            is_token = bool(secret) and path[-1].endswith("token")
            if is_token and (other := seen.setdefault((one.platform, secret), name)) != name:
                yield Finding(place, f"{name} has the same token as {other}", "give each bot one of its own")


def _find_nearest_place(tree: YamlNode, path: tuple[str, ...]) -> SourceLocation:
    """Find the place of the node at this path, or of its nearest parent."""
    for length in range(len(path), 0, -1):
        node = find_node(tree, path[:length])
        if node is not None:
            return node.place
    return tree.place


def _make_finding(
    tree: YamlNode, path: tuple[str, ...], what: str, remedy: str, severity: Severity = "error"
) -> Finding:
    """Make a finding about a setting, with its place."""
    return Finding(_find_nearest_place(tree, path), what, remedy, severity)


def _find_unknown(
    tree: YamlNode, path: tuple[str, ...], named: Iterable[str], known: Iterable[str]
) -> Iterator[Finding]:
    """Yield a finding for undefined names, without repeating them: one may be a secret in the wrong place."""
    if set(named) - {*known}:
        listed = ", ".join(f"`{to_printable(one)}`" for one in sorted(known)) or "none"
        what = f"`{to_printable('.'.join(path), 200)}` names what is not there"
        yield _make_finding(tree, path, what, f"define it, or use one of those there are: {listed}")
