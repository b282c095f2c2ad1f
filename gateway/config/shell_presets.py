"""The harmless uses of programs that people let run without asking. Any option that is not listed here asks.

The lists leave out options that write files elsewhere (`sort -o`), run programs (`find -exec`, `tar`), load code or
settings of the workspace (`git -c`), follow links to any depth (`grep -R`), change the machine (`date -s`), or never
end (`tail -f`).
"""

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

Operands: TypeAlias = Literal["none", "text", "read", "deep", "write"]


class ProgramUsage(msgspec.Struct, frozen=True):
    """The harmless use of a program, or of one of its subcommands.

    `options` are written as `-a` (letters may be combined), `--all`, `-n:` (its value is in the same word, or the next
    one) and `--lines=` (its value is in the same word). `operands`: none, any text, paths that are read, folders that
    are read to any depth, or paths that are written. `number`: `-20` is an option too.
    """

    options: str = ""
    operands: Operands = "read"
    number: bool = False
    single: bool = False  # `-name` is one option, and no four letters


class Preset(msgspec.Struct, frozen=True):
    """A program's harmless uses, with the words, options and variables that we add to keep it harmless."""

    usage: ProgramUsage = msgspec.field(default_factory=ProgramUsage)
    subcommands: Mapping[str, ProgramUsage] = msgspec.field(default_factory=dict)
    before: tuple[str, ...] = ()
    after: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict)  # by subcommand: directly behind it
    env: Mapping[str, str] = msgspec.field(default_factory=dict)


GIT_DIFF = (
    "-p -u -s -w -b --stat --shortstat --numstat --name-only --name-status --summary --raw --no-color --no-patch "
    "--patch --cached --staged --word-diff --no-renames --minimal --patience --histogram --check --unified= --stat= "
    "-U= --diff-filter= --no-prefix --full-index --binary --ignore-all-space --ignore-blank-lines --text -a -R -M -C"
)
GIT_LOG = (
    "--oneline --graph --all --decorate --no-decorate --merges --no-merges --first-parent --reverse --branches --tags "
    "--abbrev-commit --max-count= -n: --since= --until= --after= --before= --author= --grep= -i --follow --date= "
    "--topo-order --date-order --skip= --pretty= --format="
)
GIT_SUBCOMMANDS: Mapping[str, ProgramUsage] = {
    "status": ProgramUsage(
        "-s -b -v --short --branch --porcelain --long --show-stash --ahead-behind -z -uno -unormal -uall"
    ),
    "log": ProgramUsage(f"{GIT_LOG} {GIT_DIFF}", number=True),
    "diff": ProgramUsage(GIT_DIFF, "deep"),  # between two folders too
    "show": ProgramUsage(f"{GIT_DIFF} {GIT_LOG}", number=True),
    "rev-parse": ProgramUsage("--short --abbrev-ref --show-toplevel --verify --is-inside-work-tree", "text"),
    "ls-files": ProgramUsage("-c -d -m -o -s --cached --deleted --modified --others --stage --exclude-standard -z"),
    "branch": ProgramUsage("-a -r -v -vv --all --remotes --list --show-current --no-color", "none"),
}
# We switch off what a repository's settings could make git run; a setting that no option reaches makes git ask.
GIT_BEFORE = (
    *("--no-pager", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.pager=cat"),
    *("-c", "core.attributesFile=/dev/null", "-c", "core.sshCommand=false", "-c", "core.askPass=false"),
    *(
        "-c",
        "diff.external=",
        "-c",
        "gpg.program=false",
        "-c",
        "gpg.ssh.program=false",
        "-c",
        "log.showSignature=false",
    ),
    *("-c", "submodule.recurse=false", "-c", "diff.submodule=short", "-c", "status.submoduleSummary=false"),
    *("-c", "protocol.allow=never", "-c", "color.ui=false"),
)
_OWN_DIFF = ("--no-ext-diff", "--no-textconv", "--ignore-submodules=all")
GIT_AFTER: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("log", "diff", "show"), _OWN_DIFF),
    "status": ("--ignore-submodules=all",),
}
GIT_ENV = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_LITERAL_PATHSPECS": "1",
}


def _plain(options: str = "", operands: Operands = "read", number: bool = False) -> Preset:
    return Preset(ProgramUsage(options, operands, number))


_HASH = _plain("-b -t -z --binary --text --tag --zero")
_FIND = (
    "-name: -iname: -path: -ipath: -type: -maxdepth: -mindepth: -size: -mtime: -mmin: -empty -not -and -or -o -a "
    "-print -print0 -prune -user: -group: -perm: -xdev -ls"
)
PRESETS: Mapping[str, Preset] = {
    "git": Preset(subcommands=GIT_SUBCOMMANDS, before=GIT_BEFORE, after=GIT_AFTER, env=GIT_ENV),
    "ls": _plain(
        "-l -a -A -h -t -r -S -R -d -1 -F -i -s -n -p -X -U -c -u -g -o -k -m -x -C -G -B -q -Q "
        "--all --almost-all --human-readable --recursive --reverse --size --directory --inode --full-time "
        "--group-directories-first --color=never --sort= --time= --time-style="
    ),
    "cat": _plain("-n -b -s -A -E -T -v -e -t --number --number-nonblank --squeeze-blank --show-all --show-tabs"),
    "tac": _plain(""),
    "head": _plain("-n: -c: -q -v --lines= --bytes= --quiet --verbose", number=True),
    "tail": _plain("-n: -c: -q -v --lines= --bytes= --quiet --verbose", number=True),
    "wc": _plain("-l -w -c -m -L --lines --words --bytes --chars --max-line-length"),
    "nl": _plain("-b: -n: -w:"),
    "grep": _plain(
        "-i -n -l -L -c -v -w -x -r -o -q -s -h -H -E -F -G -P -a -I -e: -A: -B: -C: -m: --ignore-case "
        "--line-number --files-with-matches --files-without-match --count --invert-match --word-regexp --recursive "
        "--only-matching --extended-regexp --fixed-strings --perl-regexp --include= --exclude= --exclude-dir= "
        "--color=never --regexp= --max-count= --context= --before-context= --after-context= --no-messages --text",
        "deep",
        number=True,
    ),
    "find": Preset(ProgramUsage(_FIND, single=True)),
    "stat": _plain("-c: -f -L -t --format= --dereference --terse"),
    "file": _plain("-b -i -L -h --brief --mime --mime-type --mime-encoding"),
    "du": _plain("-s -h -a -c -k -m -b -d: --summarize --human-readable --all --total --max-depth= --apparent-size"),
    "df": _plain("-h -i -T -k -m -a -P --human-readable --inodes --print-type --total"),
    "diff": _plain(
        "-u -c -r -q -w -b -B -i -y -N -a -s -U: --unified --unified= --brief --recursive --side-by-side "
        "--ignore-all-space --ignore-case --color=never",
        "deep",
    ),
    "cmp": _plain("-s -l -b --silent --verbose"),
    "cut": _plain("-d: -f: -c: -b: -s --delimiter= --fields= --characters= --complement"),
    "comm": _plain("-1 -2 -3"),
    "sort": _plain(
        "-n -r -u -f -h -V -b -g -k: -t: -c -s --numeric-sort --reverse --unique --ignore-case "
        "--human-numeric-sort --version-sort --key= --field-separator= --check --stable"
    ),
    "md5sum": _HASH,
    "sha1sum": _HASH,
    "sha256sum": _HASH,
    "sha512sum": _HASH,
    "touch": _plain("-a -m -c --no-create", "write"),
    "mkdir": _plain("-p -v --parents --verbose", "write"),
    "basename": _plain("-a -s: --suffix=", "text"),
    "dirname": _plain("-z", "text"),
    "realpath": _plain("-e -m -s -q", "read"),
    "readlink": _plain("-f -e -m -n -q", "read"),
    "echo": _plain("-n -e -E", "text"),
    "printf": _plain("", "text"),
    "seq": _plain("-w -s: -f:", "text", number=True),
    "expr": _plain("", "text", number=True),
    "which": _plain("-a", "text"),
    "pwd": _plain("-L -P", "none"),
    "whoami": _plain("", "none"),
    "id": _plain("-u -g -n -G -r", "text"),
    "groups": _plain("", "text"),
    "uname": _plain("-a -s -n -r -v -m -p -i -o", "none"),
    "hostname": _plain("-s -f -i -I -d", "none"),
    "uptime": _plain("-p -s", "none"),
    "date": _plain("-u -R -I --utc --iso-8601 --iso-8601= --rfc-3339= -d: --date=", "none"),
    "cal": _plain("-1 -3 -m -y", "text"),
    "nproc": _plain("--all", "none"),
    "free": _plain("-h -b -k -m -g -t", "none"),
    "ps": _plain("-e -f -a -u -x -A -p: --sort= --forest aux ax", "none"),
    "sleep": _plain("", "text"),
    "true": _plain("", "text"),
    "false": _plain("", "text"),
}
