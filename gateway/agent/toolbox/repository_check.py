"""Check if git can run in a folder without running programs from its repository's settings.

Most such settings are switched off on the command line; filters and drivers have arbitrary names, so that no option
reaches them. A repository is harmless if all its settings are known to run nothing; for any other, git needs approval.
"""

import re
from pathlib import Path

from gateway.files.folders import read_plain_file

MOST_CONFIG_BYTES = 64_000
SECTION = re.compile(
    r"""\s*\[(core|user|branch|remote|submodule|init|pull|push)(?:[ ]"[^"\\\n]*")?\]\s*""", re.IGNORECASE
)
SETTING = re.compile(
    r"\s*(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|autocrlf|eol"
    r"|abbrev|active|name|email|url|pushurl|fetch|remote|merge|rebase|defaultbranch|ff|default|autosetupremote)"
    r"\s*=[^\\\n]*",
    re.IGNORECASE,
)


def is_harmless_repository(folder: Path) -> bool:
    """Return True if git, in this folder, certainly reads no setting that runs a program.

    Only settings that are known to run none pass. Without a repository git itself reports that; one without a folder
    `.git` (bare, a submodule, a further working tree) fails the check.
    """
    for place in (folder.resolve(), *folder.resolve().parents):
        git = place / ".git"
        if git.is_dir() and (git / "HEAD").exists():
            return not any((git / name).exists() for name in ("commondir", "config.worktree")) and _is_harmless(git)
        if git.exists() or (place / "HEAD").exists():
            return False
    return True


def _is_harmless(git: Path) -> bool:
    try:
        data = read_plain_file(git / "config", MOST_CONFIG_BYTES + 1)
        lines = data.decode("utf-8").split("\n")
    except FileNotFoundError:
        return True
    except (OSError, ValueError):
        return False
    blank = re.compile(r"\s*(?:[#;].*)?")
    known = (SECTION, SETTING, blank)
    return len(data) <= MOST_CONFIG_BYTES and all(any(one.fullmatch(line) for one in known) for line in lines)
