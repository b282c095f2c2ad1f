"""Build the parts that gateways on one journal share, or their counterparts for a gateway with a journal of its own.

Only this module names `cluster/`, and it loads no more than it uses.
"""

from collections.abc import Callable

from gateway.config.home import Home
from gateway.config.settings import Settings
from gateway.engine.interface import Engine
from gateway.files.agent_folders import HomeFolders
from gateway.messages.files import HomeFiles

# ruff: noqa: PLC0415 - a gateway with a journal of its own loads nothing of `cluster/`


def build_files(
    engine: Engine, home: Home, node: str, get_settings: Callable[[], Settings]
) -> tuple[HomeFiles, HomeFolders]:
    """Build the files of conversations, and the folders in which agents write."""
    if not engine.files.is_shared:
        return HomeFiles(home.files), HomeFolders()
    from gateway.cluster.files import SharedFiles
    from gateway.cluster.folders import SharedFolders
    from gateway.cluster.roots import SharedRoots

    roots = SharedRoots(home, get_settings)
    return SharedFiles(engine.files, home.files), SharedFolders(engine, home.files, node, roots.list)
