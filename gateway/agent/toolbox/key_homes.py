"""Where people's keys, passwords and tokens usually lie: no command of the agent's shell reads there unasked."""

from collections.abc import Mapping
from pathlib import Path

BELOW_HOME = (
    *(".ssh", ".gnupg", ".password-store", ".age", ".config/age", ".config/sops", ".local/share/keyrings", ".pki"),
    *(".aws", ".azure", ".oci", ".config/gcloud", ".config/doctl", ".config/hcloud", ".fly", ".kube", ".docker"),
    *(".config/containers", ".config/rclone", ".terraform.d", ".vault-token", ".netrc", ".git-credentials"),
    *(
        ".config/git/credentials",
        ".config/gh",
        ".config/glab-cli",
        ".config/hub",
        ".config/op",
        ".npmrc",
        ".yarnrc.yml",
    ),
    *(
        ".yarnrc.yml",
        ".pypirc",
        ".cargo/credentials",
        ".cargo/credentials.toml",
        ".gem/credentials",
        ".m2/settings.xml",
    ),
    *(
        ".pgpass",
        ".my.cnf",
        ".mozilla",
        ".thunderbird",
        ".config/google-chrome",
        ".config/chromium",
        ".config/BraveSoftware",
    ),
    *(".bash_history", ".zsh_history", ".python_history", ".psql_history", ".mysql_history", ".hermes"),
)
OF_THE_MACHINE = (
    *("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/ssl/private", "/etc/ssh", "/etc/sudoers"),
    *("/etc/sudoers.d", "/run/credentials", "/run/secrets", "/run/user", "/var/lib/systemd/credential.secret"),
)


def list_key_homes(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Those of this user and this machine, whether they are there or not."""
    home = Path(environ.get("HOME") or Path.home())
    return (*(home / name for name in BELOW_HOME), *map(Path, OF_THE_MACHINE))
