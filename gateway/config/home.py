"""The home of one gateway: the paths of its files. We write only in `<home>/hermes-gateway/`; the rest is Hermes's.

The module imports little on purpose: every command needs it before anything else.
"""

import os
import stat
import sys
import zlib
from collections.abc import Mapping
from pathlib import Path

from gateway.errors import ConfigError

OWN_FOLDER = "hermes-gateway"
LONGEST_SOCKET = 107 if sys.platform == "linux" else 103  # what sockaddr_un holds, without the zero at its end
SHARED_TEMPORARY = Path("/tmp")  # noqa: S108 - one place for all who look; what we use in it is 0700 and checked


def get_process_environment() -> dict[str, str]:
    """Return a copy of the environment that this process was started with. Only this function reads it."""
    return dict(os.environ)  # noqa: TID251 - this is that place


def find_home(environ: Mapping[str, str], chosen: str = "") -> "Home":
    """Return the home that was chosen on the command line, else HERMES_HOME, else `~/.hermes`.

    Raises:
        ConfigError: HERMES_HOME is not an absolute path, and so would mean another place in every directory; or the
            path is not UTF-8, which nothing that we write down could name.
    """
    person = environ.get("HOME") or str(Path.home())
    named = environ.get("HERMES_HOME", "")
    if named.startswith("~/"):
        named = person + named[1:]
    if named and not chosen and not named.startswith("/"):
        raise ConfigError("HERMES_HOME is not an absolute path: the environment\nwrite the whole path, from / on")
    root = Path(os.path.abspath(chosen or named or f"{person}/.hermes"))  # noqa: PTH100 - Path has no such thing
    try:
        str(root).encode()
    except UnicodeEncodeError:
        shown = os.fsencode(root).decode(errors="backslashreplace")
        remedy = "rename that folder, or choose another one with HERMES_HOME or --home DIR"
        raise ConfigError(f"the path of the home is not UTF-8: {shown}\n{remedy}") from None
    return Home(root, _find_runtime_directory(environ))


def _find_runtime_directory(environ: Mapping[str, str]) -> Path | None:
    """Return the user's directory for sockets, also for processes started without the variable (cron, sudo, ssh)."""
    for named in (environ.get("XDG_RUNTIME_DIR", ""), f"/run/user/{os.geteuid()}"):
        if named.startswith("/") and is_private(Path(named)):
            return Path(named)
    return None


def is_private(path: Path) -> bool:
    """Return True for a real directory, no link, that is ours and that no other user may enter."""
    try:
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077


class Home:
    """Paths, and nothing but paths; none of them need exist."""

    def __init__(self, root: Path, runtime: Path | None = None) -> None:
        self.root = root
        self.env = root / ".env"  # secrets, shared with Hermes; only `setup` and `config set` write to it
        self.hooks = root / "hooks"
        self.plugins = root / "plugins"
        self.skills = root / "skills"
        self.boot_md, self.heartbeat_md = root / "BOOT.md", root / "HEARTBEAT.md"
        self.hermes_logs = root / "logs"  # of Hermes and of hooks written for it
        self.hermes_state = root / "state.db"  # there where Hermes has run
        self.hermes_sessions = root / "sessions" / "sessions.json"
        self.hermes_config = root / "config.yaml"  # Hermes's own: read where it names hooks and plugins, never written

        self.own_folder = ours = root / OWN_FOLDER
        self.config = ours / "config.yaml"
        self.config_undo = ours / "config-undo.json"  # what the last `config set` or `config unset` replaced
        self.journal = ours / "journal.db"
        self.search = ours / "search.db"  # made from the journal, and can be rebuilt
        self.logs, self.log = ours / "logs", ours / "logs" / "gateway.log"
        self.hook_logs = self.logs / "hooks"
        self.hook_state = ours / "hooks"  # what is kept of hooks and for them: requirements, consents, small stores
        self.hooks_lock = ours / "hooks.lock"  # what was agreed to when hooks were installed
        self.installed_hooks = ours / "installed"
        self.installed_skills = self.installed_hooks / "skills"
        self.hook_indexes = ours / "indexes.json"  # where hooks are looked for by name, and whose keys sign that
        self.hook_data = ours / "data"  # files that hooks keep
        self.files = ours / "files"  # attachments that came in
        self.shared_files = ours / "files.shared"  # is there when all of them are with the servers, too
        self.folders = ours / "folders"  # what of the agents' folders all gateways have
        self.memory = ours / "memory"  # what people had the agent remember
        self.unreadable = ours / "unreadable"  # messages of networks that could not be parsed
        self.context_copies = ours / "context"  # what context files said before commands ran
        self.voice = ours / "voice"  # what programs that speak are writing now
        self.backups = ours / "backups"
        self.restore = ours / "restore"  # a copy that is being put back
        self.restore_part = ours / ".restore.new"  # the same while it is being unpacked
        self.replaced = ours / "replaced"  # what stood where a copy was put back
        self.upgrade = ours / "upgrade"  # what is known of an upgrade that is under way
        self.lock = ours / "gateway.lock"
        self.chat_history = ours / "chat_history"  # what was typed into `chat`
        self.port = ours / "port"  # the address of the page, if the usual one was taken
        self.node_name = ours / "node.json"  # how this gateway is called among those that share a journal
        self._runtime = runtime

    def __repr__(self) -> str:
        return f"Home({str(self.root)!r})"

    @property
    def hermes_jobs(self) -> Path:
        """The jobs of Hermes, which `jobs import` reads."""
        return self.root / "cron" / "jobs.json"

    @property
    def own_places(self) -> list[Path]:
        """All paths of this class in our own folder. They are collected, so that a new one cannot be forgotten."""
        named = (path for path in vars(self).values() if isinstance(path, Path) and self.own_folder in path.parents)
        return [*named, self.socket, self.desk_socket, self.desk_programs, self.turn_marks]

    @property
    def socket(self) -> Path:
        """The control socket: in our directory, or in a runtime directory if its path would be too long there.

        The name depends on the home alone, and an existing socket takes precedence: so the gateway and its commands
        agree, even if systemd started one and cron the other.
        """
        return self._find_socket("control.sock", "sock")

    @property
    def desk_socket(self) -> Path:
        """The socket at which programs on this machine ask before they run a tool."""
        return self._find_socket("desk.sock", "desk.sock")

    @property
    def desk_programs(self) -> Path:
        """The file that names the programs on the desk that have asked, while they run."""
        return self.own_folder / "desk.json"

    @property
    def turn_marks(self) -> Path:
        """The file that names the turn whose code is running, read by the next start after a crash.

        It is in memory if there is a runtime directory. A disk that does not answer would hold up the whole gateway
        with each mark.
        """
        if self._runtime is None:
            return self.own_folder / "turn-marks"
        return self._runtime / f"{OWN_FOLDER}-{self._checksum}.turn-marks"

    @property
    def _checksum(self) -> str:
        """The part of a name that tells this user's homes apart in a runtime directory; it costs no import."""
        return f"{zlib.crc32(os.fsencode(os.path.realpath(self.root))):08x}"

    def _find_socket(self, name: str, ending: str) -> Path:
        near = self.own_folder / name
        if len(os.fsencode(near)) <= LONGEST_SOCKET:
            return near
        directories = [SHARED_TEMPORARY / f"{OWN_FOLDER}-{os.geteuid()}"]
        if self._runtime is not None:
            directories.insert(0, self._runtime / OWN_FOLDER)
        far = [directory / f"{self._checksum}.{ending}" for directory in directories]
        return next((path for path in far if path.is_socket() and is_private(path.parent)), far[0])

    def path(self, written: str) -> Path:
        """Resolve a path of the configuration: `~` is the user's, and a relative path begins at the gateway's home."""
        return self.root / Path(written).expanduser()
