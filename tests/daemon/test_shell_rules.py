"""Commands that `tools.shell_allow` lets run unasked cannot be made to run anything else, on a running gateway."""

import shutil
import subprocess
from pathlib import Path

import pytest

from gateway.testing import GatewayProcess

pytestmark = [pytest.mark.process, pytest.mark.timeout(180)]

ALLOWED = "[ls, cat, git, touch, grep, find, sort, head, tail, tar, date, diff, echo, ps, {make: [lint, '-j *']}]"
RUN = "touch OWNED"
SCRIPT = f"#!/bin/sh\n{RUN}\n"

# Each would run a program of the workspace, write elsewhere, or read what is hidden, were it run as it is written.
HOSTILE = """
git grep --no-index -Osh touch x.txt
git grep --open-files-in-pager=./run.sh hello
git grep -O./run.sh hello
git -c alias.x=!./run.sh x
git -c core.fsmonitor=./run.sh status
git -c core.pager=./run.sh log
git --exec-path=. status
git --exec-path=. run
git -p log
git --paginate log
git --config-env=core.fsmonitor=PATH status
git --git-dir=evil.git status
git -C evil.git log
git --work-tree=/ status
git x
git run
git diff --ext-diff
git log -p --ext-diff
git show --ext-diff HEAD
git diff --textconv
git show --textconv HEAD
git diff --output=OWNED
git log --output=OWNED
git log --output OWNED
git log --outpu=OWNED
git diff -Oorder
git diff --no-index /etc/passwd x.txt
git diff /root/.ssh /etc
git submodule foreach ./run.sh
git submodule update
git bisect run ./run.sh
git rebase --exec ./run.sh HEAD
git archive --output=OWNED HEAD
git archive --remote=ext::./run.sh HEAD
git clone ext::./run.sh OWNED
git fetch --upload-pack=./run.sh .
git ls-remote ext::./run.sh
git config alias.y !./run.sh
git difftool -y -x ./run.sh
git checkout -- x.txt
git worktree add OWNED
git filter-branch --tree-filter ./run.sh
git apply run.patch
git hook run pre-commit
git status --recurse-submodules
git log --show-signature
git branch OWNED
find . -exec ./run.sh ;
find . -name x.txt -exec ./run.sh +
find . -name x.txt -execdir ./run.sh +
find . -ok ./run.sh +
find . -name x.txt -delete
find . -fprint OWNED
find . -fls OWNED
find . -fprintf OWNED x
grep -f /root/.ssh/id_rsa x.txt
grep -R hello .
grep -r hello /
grep --file=x.txt x.txt
sort -o OWNED x.txt
sort -oOWNED x.txt
sort --output=OWNED x.txt
sort --outp=OWNED x.txt
sort --compress-program=./run.sh -S1 x.txt
sort --compress-prog ./run.sh x.txt
sort -T . -S 1k --compress-program ./run.sh x.txt
tar cf a.tar x.txt --checkpoint=1 --checkpoint-action=exec=./run.sh
tar -I ./run.sh -xf a.tar
tar --use-compress-program=./run.sh -cf a.tar x.txt
tar --to-command=./run.sh -xf a.tar
date -s 2001-01-01
date -f x.txt
diff --to-file=/etc/passwd x.txt
diff -l x.txt run.sh
tail -f x.txt
touch ../OWNED
touch /tmp/OWNED-by-the-shell-test
touch out/OWNED
touch -r /etc/passwd x.txt
cat /proc/self/environ
cat ../../.env
cat out/.env
cat secrets
cat ~/.ssh/id_rsa
ps e
ps auxe
ps -o environ
LS_COLORS=x ls
GIT_EXTERNAL_DIFF=./run.sh git diff
GIT_PAGER=./run.sh git -p log
PATH=.:/bin ls
env ls
./ls
bin/ls
/bin/ls
ls;./run.sh
ls && ./run.sh
ls | ./run.sh
ls || ./run.sh
ls & ./run.sh
ls > OWNED
ls >> OWNED
ls < x.txt
ls $(./run.sh)
ls `./run.sh`
ls "$(./run.sh)"
ls "`./run.sh`"
ls <(./run.sh)
ls *
ls ?.txt
ls {a,b}
ls ~
ls \\$(./run.sh)
ls 'a' "b$(./run.sh)"
ls 'a'$(./run.sh)
ls # ./run.sh
ls !!
make test
make lint SHELL=./run.sh
make -f evil.mk lint
make --eval=x lint
echo x > OWNED
""".strip().splitlines()
HOSTILE += ["ls\n./run.sh", "ls\r./run.sh", "ls\t-la;./run.sh", "ls\x00./run.sh", "ls\u00a0x", "ls 'a\n./run.sh'"]
HOSTILE += ["", " ", "'"]

HARMLESS = """
ls -la
cat x.txt
git status
git status -sb
git diff
git diff --stat
git log --oneline -3
git log -p -1
git show HEAD
git show --stat HEAD
git branch -a
git ls-files
grep -rn hello .
grep -rn 'hello world' x.txt
find . -name '*.txt'
sort -rn x.txt
head -n 1 x.txt
tail -1 x.txt
diff x.txt run.sh
touch made
echo 'a  b'
date -u
ps aux
make lint
""".strip().splitlines()


def make_workspace(root: Path, settings: str) -> None:
    """A repository in which all that git might run is there, and does its work."""
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "protocol.file.allow=always"]
    (root / "bin").mkdir(parents=True)
    for name in ("run.sh", "bin/ls", "ls", "git-run"):
        (root / name).write_text(SCRIPT)
        (root / name).chmod(0o755)
    (root / "x.txt").write_text("hello world\n")
    (root / "Makefile").write_text("lint:\n\t@echo linted\ntest:\n\t./run.sh\n")
    (root / "evil.mk").write_text("lint:\n\t./run.sh\n")
    (root / ".gitattributes").write_text("* filter=evil diff=evil merge=evil\n")
    (root.parent.parent / ".env").write_text("TOKEN_OF=secret-of-the-home\n")
    (root.parent.parent / ".env").chmod(0o600)
    (root / "out").symlink_to(root.parent.parent)
    (root / "secrets").symlink_to(root.parent.parent / ".env")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "one")):
        subprocess.run([*git, *words], cwd=root, check=True, capture_output=True)
    shutil.copytree(root / ".git", root / "evil.git")
    below = root / "below"
    subprocess.run([*git, "clone", "-q", str(root), str(below)], check=True, capture_output=True)
    with (below / ".git/config").open("a") as file:
        file.write("[core]\n\tfsmonitor = ../run.sh\n")
    subprocess.run([*git, "submodule", "add", "-q", "./below"], cwd=root, check=False, capture_output=True)
    for hook in ("post-index-change", "pre-commit", "fsmonitor-watchman", "post-checkout"):
        (root / ".git/hooks" / hook).write_text(SCRIPT)
        (root / ".git/hooks" / hook).chmod(0o755)
    with (root / ".git/config").open("a") as file:
        file.write(settings)
    (root / "x.txt").write_text("hello world\nagain\n")


EVIL = """
[core]
	fsmonitor = ./run.sh
	pager = ./run.sh
[alias]
	x = !./run.sh
	status = !./run.sh
[filter "evil"]
	clean = ./run.sh
	smudge = ./run.sh
[diff "evil"]
	command = ./run.sh
	textconv = ./run.sh
[diff]
	external = ./run.sh
"""


@pytest.mark.parametrize("settings", ["", EVIL], ids=["a plain repository", "a hostile repository"])
def test_a_hundred_hostile_commands_ask_or_do_nothing(tmp_path, settings):
    with GatewayProcess(tmp_path / "home") as gateway:
        root = gateway.home.own_folder / "workspace"
        make_workspace(root, settings)
        commands = [*HOSTILE, *HARMLESS]
        turns = [
            {
                "user": f"try {number}.",
                "answers": [{"tool_calls": [{"name": "shell", "args": {"command": command}}]}, {"text": "it ran"}],
            }
            for number, command in enumerate(commands)
        ]
        gateway.script(*turns, settings=f"tools: {{shell_allow: {ALLOWED}}}\n")
        gateway.start()
        said = {}
        for number, command in enumerate(commands):
            said[command] = gateway.say(f"try {number}.", session=f"s{number}")["reply"]
            owned = [str(one) for one in tmp_path.rglob("OWNED*")]
            assert not owned, (command, owned)
        unasked = [command for command in HOSTILE if command and said[command] == "it ran"]
        assert unasked == []
        asked = [command for command in HARMLESS if said[command] != "it ran"]
        assert asked == ([] if not settings else [command for command in HARMLESS if command.startswith("git")])
        assert not Path("/tmp/OWNED-by-the-shell-test").exists()


def test_a_name_that_is_not_known_asks_and_the_start_says_which_line_to_write(tmp_path):
    with GatewayProcess(tmp_path / "home") as gateway:
        call = {"tool_calls": [{"name": "shell", "args": {"command": "npm --version"}}]}
        gateway.script({"user": "try", "answers": [call, {"text": "it ran"}]}, settings="tools: {shell_allow: [npm]}\n")
        gateway.start()
        assert "npm" in gateway.say("try")["reply"]
        log = (gateway.home.logs / "gateway.log").read_text()
        assert "entry 1 of `tools.shell_allow` names no program whose harmless use is known here: it asks" in log
        assert "shell_allow: [{npm: [--version]}]" in log
