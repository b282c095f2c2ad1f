"""Unknown names in the configuration: of hooks, of hooks' options, of tools; and models without a price.

A mistyped name has no effect, so no other part of the gateway reports the mistake."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches

from gateway.agent.models.prices import find_price
from gateway.config.loading import Configuration
from gateway.config.settings import HookOverrides
from gateway.hooks.places.sources import HookVersion, Source
from gateway.yaml_source.tree import Finding, SourceLocation, to_printable

SPECIAL_NAMES = frozenset({"all", "trusted"})
GLOB_SIGNS = frozenset("*?[")


def find_unknown_hooks(configuration: Configuration, sources: Sequence[Source]) -> Iterator[Finding]:
    """Find settings of unknown hooks, and options that a hook does not have."""
    settings, agents = configuration.settings.hooks, configuration.settings.agents
    lists = {"hooks.enabled": settings.enabled, "hooks.disabled": settings.disabled}
    lists |= {f"agents.{name}.hooks": agent.hooks for name, agent in agents.items()}
    if not settings.each and not any(lists.values()):
        return
    known: dict[str, HookVersion] = {}
    for version in (found for source in sources for found in source.list()):
        known |= {version.name: version, version.bare_name: version}
    named = [(setting, name) for setting, names in lists.items() for name in names]
    for setting, name in [*named, *((f"hooks.{name}", name) for name in settings.each)]:
        if name not in known:
            what = f"{setting}: there is no hook {to_printable(name)}"
            yield _make_finding(
                configuration, setting, what, _suggest(name, known, "hooks list --all names those there")
            )
    for name, overrides in settings.each.items():
        if name in known and overrides.options:
            yield from _find_unknown_options(configuration, known[name], name, overrides)


def _find_unknown_options(
    configuration: Configuration, version: HookVersion, name: str, overrides: HookOverrides
) -> Iterator[Finding]:
    """Find unknown options of a hook. A hook whose manifest names no options may read any option."""
    manifest = version.source.inspect_manifest(version).manifest
    options: Mapping[str, object] = manifest.options if manifest else {}
    for option in overrides.options if options else ():
        if option not in options:
            setting = f"hooks.{name}.options.{option}"
            remedy = _suggest(option, options, f"its HOOK.yaml has {', '.join(options)}")
            yield _make_finding(configuration, setting, f"{to_printable(setting)} is not a setting", remedy)


def find_unknown_tools(configuration: Configuration, known: frozenset[str]) -> Iterator[Finding]:
    """Find tools that do not exist; the tools of servers are known only while the servers run."""
    given, agents = configuration.settings.access.tools, configuration.settings.agents
    lists = {f"access.tools.{role}": getattr(given, role) for role in given.__struct_fields__}
    lists |= {f"agents.{name}.tools": agent.tools or () for name, agent in agents.items()}
    for setting, names in lists.items():
        for name in names if setting in configuration.origins else ():
            if name in known | SPECIAL_NAMES or name.startswith("mcp_") or not GLOB_SIGNS.isdisjoint(name):
                continue
            what = f"{setting}: there is no tool {to_printable(name)}"
            yield _make_finding(configuration, setting, what, _suggest(name, known, "a plugin may bring one"))


def find_unknown_prices(configuration: Configuration) -> Iterator[Finding]:
    """Find models without a known price: no budget of money can stop their calls."""
    settings = configuration.settings
    budgets = settings.budgets
    named = (budgets.people, budgets.groups, budgets.keys)
    limits = (budgets.all, budgets.each_person, *(limit for one in named for limit in one.values()))
    if all(amount.money is None for limit in limits for amount in (limit.day, limit.month)):
        return
    for name, model in {
        "model": settings.model,
        **{f"models.{one}": own for one, own in settings.models.items()},
    }.items():
        if not find_price(model).is_known:
            what = f"{to_printable(name)} has no known price: budgets count its tokens only"
            yield _make_finding(configuration, name, what, "set its input_price and output_price")


def _suggest(name: str, known: Collection[str], otherwise: str) -> str:
    near = get_close_matches(name, known, 1)
    return f"did you mean {to_printable(near[0])}?" if near else otherwise


def _make_finding(configuration: Configuration, setting: str, what: str, remedy: str) -> Finding:
    return Finding(_find_place(configuration.origins, setting), what, remedy, "warning")


def _find_place(origins: Mapping[str, SourceLocation], setting: str) -> SourceLocation:
    """Return the place of the setting, or of the first setting below it; a hook's settings may be in `hooks.each`."""
    names = (setting, setting.replace("hooks.", "hooks.each.", 1))
    below = (place for name, place in origins.items() if name.startswith(tuple(f"{one}." for one in names)))
    return next((origins[one] for one in names if one in origins), None) or next(below, SourceLocation("config.yaml"))
