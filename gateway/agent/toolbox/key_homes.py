"""The places of people's keys, passwords and tokens, and of files that run by themselves: start files, units.

No command of the agent's shell reads the first unasked, and no tool of files reaches any of them.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

BELOW_HOME = (
    *(".ssh", ".gnupg", ".password-store", ".age", ".config/age", ".config/sops", ".local/share/keyrings", ".pki"),
    *(".aws", ".azure", ".oci", ".config/gcloud", ".config/doctl", ".config/hcloud", ".fly", ".kube", ".docker"),
    *(".config/containers", ".config/rclone", ".terraform.d", ".vault-token", ".netrc", ".git-credentials"),
    *(".config/git/credentials", ".config/gh", ".config/glab-cli", ".config/hub", ".config/op"),
    *(".npmrc", ".yarnrc.yml", ".pypirc", ".cargo/credentials", ".cargo/credentials.toml"),
    *(".gem/credentials", ".m2/settings.xml", ".pgpass", ".my.cnf"),
    *(".mozilla", ".thunderbird", ".config/google-chrome", ".config/chromium", ".config/BraveSoftware"),
    *(".bash_history", ".zsh_history", ".python_history", ".psql_history", ".mysql_history", ".hermes"),
)
RUN_UNASKED = (
    *(".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".inputrc"),
    *(".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".cshrc", ".tcshrc", ".config/fish"),
    *(".config/systemd", ".local/share/systemd", ".config/autostart", ".config/environment.d", "Library/LaunchAgents"),
    *(".gitconfig", ".config/git", ".xinitrc", ".xprofile", ".xsession", ".xsessionrc", ".pam_environment"),
)
WIDE_ROOT = "the agent reads and writes in {root}, which holds keys and settings of yours"
OF_THE_MACHINE = (
    *("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/ssl/private", "/etc/ssh", "/etc/sudoers"),
    *("/etc/sudoers.d", "/run/credentials", "/run/secrets", "/run/user", "/var/lib/systemd/credential.secret"),
)


def list_startup_files(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """List files and folders of this user that a login, a shell or git obeys, existing or not."""
    home = Path(environ.get("HOME") or Path.home())
    return tuple(home / name for name in RUN_UNASKED)


def find_wide_roots(roots: Iterable[Path], home: Path, environ: Mapping[str, str]) -> list[Path]:
    """List the roots that contain the gateway's home, or a place of keys."""
    places = [Path(os.path.realpath(place)) for place in (home, *list_key_homes(environ))]
    real = {root: Path(os.path.realpath(root)) for root in roots}
    return [root for root, path in real.items() if any(place.is_relative_to(path) for place in places)]


def list_key_homes(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """List the places of keys of this user and this host, existing or not."""
    home = Path(environ.get("HOME") or Path.home())
    return (*(home / name for name in BELOW_HOME), *map(Path, OF_THE_MACHINE))
