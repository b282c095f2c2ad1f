"""The table of dialects, each the format of one program's hooks, and the dialects of each place of hooks.

The first dialect of a place owns each folder that no other dialect claims. To add a dialect, change only this module.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from gateway.config.home import Home
from gateway.hermes.config import HermesConfig
from gateway.hermes.dialects import HERMES
from gateway.hermes.missing_plugins import make_missing_source
from gateway.hermes.plugin_packages import make_package_source
from gateway.hermes.shim.tool_names import HERMES_TOOLS, OUR_TOOLS_ALONE
from gateway.hermes.sources import (
    add_hermes_variables,
    create_hermes_folders,
    list_hermes_sources,
    make_plugin_source,
)
from gateway.hooks.places.dialect import OURS, Dialect
from gateway.hooks.places.folder_source import FolderSource
from gateway.hooks.places.installed_source import BUILT_IN_FOLDER, make_installed_source
from gateway.hooks.places.sources import Source

DIALECTS: tuple[Dialect, ...] = (OURS, HERMES)
TOOLS = (*OUR_TOOLS_ALONE, *(row.ours for row in HERMES_TOOLS.rows))  # our tools for which a dialect has names
create_folders = create_hermes_folders  # the folders of a home that hooks of other programs expect
add_variables = add_hermes_variables  # the environment of hooks, with the variables of other programs


def make_folder_source(path: Path, origin: str, conversations: frozenset[str] | None = None) -> FolderSource:
    """Return a place of hooks of all dialects."""
    return FolderSource(path, origin, conversations=conversations, dialects=DIALECTS)


def list_places(
    home: Home, environ: Mapping[str, str], dirs: Iterable[str] = (), others: Iterable[Source] = ()
) -> tuple[Source, ...]:
    """List the places of hooks; a hook in a later place replaces a hook of the same name in an earlier place.

    `dirs` are further folders of hooks, `others` the hooks of other gateways.
    """
    placed = [*dirs]
    return (
        make_missing_source(home, environ),
        *others,
        FolderSource(BUILT_IN_FOLDER, "built-in", is_ours=True),
        make_package_source(home, environ),
        *list_hermes_sources(home, environ),
        make_installed_source(home, DIALECTS, placed),
        make_folder_source(home.hooks, "home"),
        *(make_folder_source(home.path(written), written) for written in placed),
    )


def list_places_of(folder: Path, home: Home) -> tuple[Source, ...]:
    """List the places that take a folder, wherever it is, as a hook."""
    plugins = make_plugin_source(folder.parent, "path", HermesConfig(home.hermes_config))
    return (plugins, make_folder_source(folder.parent, "path"))
