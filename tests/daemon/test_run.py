"""The daemon from outside: it starts, reports its place, answers, and ends on request."""

import json
import os
import platform
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from gateway.daemon.shutdown import CLEANUP_SECONDS
from gateway.errors import ExitCode, NotRunning
from gateway.testing import GatewayProcess
from gateway.testing.forked_command import PROGRAM
from gateway.worker.command import TEMPORARY_OF_ALL
from gateway.worker.kernel import ARENAS
from tests.waits import Stopwatch

pytestmark = pytest.mark.process
TERMINAL = "agent:main:terminal:dm:main"
POOL = 64 << 20  # bytes: what glibc keeps for some of the threads begins at a multiple of that


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path / "home") as gateway:
        yield gateway


def test_it_prints_one_box_answers_and_stops_with_0(gateway: GatewayProcess) -> None:
    gateway.start()
    assert gateway.say("what is 12 * (3 + 4)")["reply"] == "The result is 84."
    code, printed, _ = gateway.stop()
    assert code == 0
    for fact in (str(gateway.home.socket), "demo", "telegram off (no token)", str(gateway.home.root), "Ctrl-C"):
        assert fact in printed


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_it_serves_though_the_disk_of_its_output_is_full(gateway: GatewayProcess) -> None:
    with Path("/dev/full").open("w") as full:
        gateway.process = subprocess.Popen([*PROGRAM, "run"], env=gateway.environ, stdout=full, stderr=full, text=True)
    gateway.until(lambda: is_ready(gateway))
    assert gateway.say("what is 12 * (3 + 4)")["reply"] == "The result is 84."
    assert gateway.stop()[0] == 0


def is_ready(gateway: GatewayProcess) -> bool:
    with suppress(NotRunning):
        return bool(gateway.call("status")["state"] == "ready")
    return False


@pytest.mark.skipif(os.getuid() != 0, reason="root alone sees what a hidden process has in memory")
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other libraries have one pool for all threads")
def test_its_threads_share_the_memory_that_is_free(gateway: GatewayProcess) -> None:
    gateway.start()
    gateway.say("hello")
    assert gateway.process
    places = Path(f"/proc/{gateway.process.pid}/maps").read_text().splitlines()
    found = sum(int(place.partition("-")[0], 16) % POOL == 0 for place in places)
    assert found < 2 * ARENAS, "by chance another thing may begin there, but no pool for each thread"


def test_ctrl_c_stops_it_too(gateway: GatewayProcess) -> None:
    gateway.start()
    assert gateway.stop(signal.SIGINT)[0] == 0


def test_a_person_who_has_it_in_the_background_stops_it_by_a_command(gateway: GatewayProcess) -> None:
    gateway.start()
    asked = gateway.cli("stop")
    assert (asked.returncode, asked.stdout, asked.stderr) == (0, "", "the gateway has stopped\n")
    assert gateway.process
    assert gateway.process.wait() == 0
    assert gateway.cli("stop").returncode == 3


def test_a_command_restarts_it_with_the_configuration_of_now(gateway: GatewayProcess) -> None:
    gateway.script({"user": "hi", "text": "first"})
    gateway.start()
    assert gateway.process
    gateway.configure("model: {provder: demo}\n")
    refused = gateway.cli("restart")
    assert (refused.returncode, "config.yaml:1:9" in refused.stderr) == (78, True), refused.stderr
    assert gateway.say("hi")["reply"] == "first", "it has not ended for what it could not start with"
    gateway.script({"user": "hi", "text": "second"}, settings="logs: {keep: 2}\n")
    before = gateway.call("status")["since"]
    done = gateway.cli("restart")
    assert (done.returncode, done.stdout, "the gateway has restarted\n" in done.stderr) == (0, "", True), done.stderr
    assert gateway.call("status")["since"] > before
    assert gateway.process.poll() is None, "it runs where it was started"
    assert gateway.say("hi")["reply"] == "second"
    assert gateway.call("status")["attention"] == []
    assert "restart" in {one["what"] for one in gateway.call("activity.list")["activity"]}
    assert gateway.stop()[0] == 0
    assert gateway.cli("restart").returncode == 3


def test_a_supervisor_restarts_it(gateway: GatewayProcess, tmp_path: Path) -> None:
    gateway.start(environ={"NOTIFY_SOCKET": str(tmp_path / "notify")})
    gateway.call("restart")
    assert gateway.process
    assert gateway.process.wait() == ExitCode.RESTART


def test_what_it_writes_is_the_owners_alone_and_in_one_place(gateway: GatewayProcess) -> None:
    gateway.start()
    gateway.say("hello")
    gateway.stop()
    elsewhere = {path for path in gateway.home.root.rglob("*") if gateway.home.own_folder not in (path, *path.parents)}
    sessions = gateway.home.hermes_sessions
    assert elsewhere <= {gateway.home.hermes_logs, sessions.parent, sessions}  # what hooks made for Hermes look for
    for path in gateway.home.own_folder.rglob("*"):
        allowed = 0o700 if path.is_dir() else 0o600
        assert stat.S_IMODE(path.lstat().st_mode) == allowed, path


def test_a_turn_is_let_end_when_it_stops(gateway: GatewayProcess) -> None:
    gateway.script({"user": "slow", "answers": [{"chunks": ["slow", " answer"], "delay": "300ms"}]})
    gateway.start()
    asking = gateway.spawn("chat", "-m", "slow")
    gateway.until(lambda: is_claimed(gateway))
    assert gateway.stop()[0] == 0
    gateway.start()
    history = gateway.call("chat.say", {"text": "/sessions", "session": "main"})
    assert "slow" in history["reply"]
    assert gateway.call("status")["turns"]["running"] == 0
    asking.communicate()


def is_claimed(gateway: GatewayProcess) -> bool:
    with closing(sqlite3.connect(gateway.home.journal)) as db:
        there = db.execute('SELECT 1 FROM log WHERE CAST(data AS TEXT) LIKE \'%"kind":"claim"%\'')
        return there.fetchone() is not None


def test_a_turn_that_will_not_end_is_taken_up_by_the_next_gateway(gateway: GatewayProcess) -> None:
    gateway.configure("gateway: {shutdown_timeout: 2s}\n")
    gateway.start()
    asking = gateway.spawn("chat", "-m", "count to 14 slowly")  # longer than it takes to stop it, on any machine
    gateway.until(lambda: is_claimed(gateway))  # a message that is not yet is given back at once
    begun = time.monotonic()
    with Stopwatch() as watch:
        assert gateway.stop()[0] == 0
    assert time.monotonic() - begun >= 2, "it had the whole time that the setting says"
    assert watch.seconds < 20 + CLEANUP_SECONDS
    asking.communicate()
    gateway.start()
    gateway.until(lambda: "Counted to 14" in str(gateway.call("sessions.show", {"session": TERMINAL})), 60)


def test_a_second_signal_ends_it_at_once(gateway: GatewayProcess) -> None:
    gateway.start()
    asking = gateway.spawn("chat", "-m", "count to 60 slowly")
    gateway.until(lambda: is_claimed(gateway))
    assert gateway.process
    gateway.process.send_signal(signal.SIGTERM)
    gateway.until(lambda: gateway.call("status")["state"] == "stopping")
    with Stopwatch() as watch:
        assert gateway.stop()[0] == 130
    assert watch.seconds < 25, "it would be let go on for thirty, and takes sixty"
    asking.communicate()


def test_a_second_gateway_for_a_home_says_who_holds_it_and_ends_with_1(gateway: GatewayProcess) -> None:
    gateway.configure("gateway: {shutdown_timeout: 1s}\n")
    gateway.start()
    assert gateway.process
    second = gateway.cli("run")
    assert second.returncode == 1
    waits, *_, held, _ = second.stderr.splitlines()
    assert f"serves this home: pid {gateway.process.pid} since " in waits
    assert f"held by pid {gateway.process.pid}" in held
    assert gateway.say("hello")["status"] == "ok"


def test_after_a_crash_socket_and_lock_of_the_dead_are_no_hindrance(gateway: GatewayProcess) -> None:
    gateway.start()
    gateway.kill()
    assert gateway.home.socket.is_socket()
    assert gateway.cli("status").returncode == 3
    gateway.start()
    assert gateway.say("hello")["status"] == "ok"


def test_one_alone_says_which_part_of_the_work_nobody_does(gateway: GatewayProcess) -> None:
    gateway.start("--roles", "lanes,hooks", environ={"TELEGRAM_BOT_TOKEN": "123456:not-a-token-of-anybody"})
    assert gateway.say("what is 12 * (3 + 4)")["reply"] == "The result is 84."
    unread, missing = gateway.call("status")["attention"]
    assert unread.startswith("no node serves the chat networks")
    assert "telegram  standby" in gateway.cli("platform", "list").stdout
    assert missing.startswith("no node opens the port")
    assert "does not do `web`" in gateway.cli("open").stderr
    assert gateway.stop()[0] == 0
    gateway.start("--roles", "ingress,web")
    with gateway.spawn("chat", "-m", "what is 1 + 2") as asking:
        gateway.until(lambda: gateway.call("status")["backlog"]["sessions"] == 1)
        asking.kill()
        asking.communicate()
    missing, untold = gateway.call("status")["attention"]
    assert missing.startswith("no node runs turns: messages wait; let a gateway on this journal do `lanes`")
    assert untold.startswith("no node delivers pending events to durable hooks")
    assert "no node runs turns" in gateway.cli("doctor").stdout
    assert gateway.stop()[0] == 0
    gateway.start()
    gateway.until(lambda: "The result is 3." in str(gateway.call("sessions.show", {"session": TERMINAL})))
    assert gateway.call("status")["attention"] == []


def test_status_tells_programs_whether_it_runs(gateway: GatewayProcess) -> None:
    down = gateway.cli("status", "--json")
    assert (down.returncode, json.loads(down.stdout)["running"]) == (3, False)
    gateway.start()
    up = gateway.cli("status", "--json")
    facts = json.loads(up.stdout)
    assert up.returncode == 0
    assert (facts["schema_version"], facts["running"], facts["state"]) == (1, True, "ready")
    assert {part["name"]: part["state"] for part in facts["parts"]}["lanes"] == "up"


def test_chat_prints_the_reply_alone_and_json_is_one_object(gateway: GatewayProcess) -> None:
    gateway.start()
    assert gateway.cli("chat", "-m", "what is 2+2").stdout == "The result is 4.\n"
    said = json.loads(gateway.cli("chat", "-m", "what is 2+2", "--json", "--session", "sums").stdout)
    assert (said["schema_version"], said["reply"], said["session"]) == (1, "The result is 4.", "sums")


def test_a_new_configuration_is_taken_at_sighup_and_a_bad_one_is_not(gateway: GatewayProcess) -> None:
    gateway.script({"user": "hi", "answers": [{"text": "first"}]})
    gateway.start()
    assert gateway.say("hi")["reply"] == "first"
    gateway.script({"user": "hi", "answers": [{"text": "second"}]})
    assert gateway.process
    gateway.process.send_signal(signal.SIGHUP)
    gateway.until(lambda: gateway.say("hi")["reply"] == "second")
    gateway.script({"user": "hi", "answers": [{"text": "third"}]}, settings="logs: {keep: 2}\n")
    gateway.process.send_signal(signal.SIGHUP)
    gateway.until(lambda: bool(gateway.call("status")["attention"]))
    assert gateway.call("status")["attention"] == ["changed, and in force after hermes-gateway restart: logs.keep"]
    assert gateway.say("hi")["reply"] == "third"
    gateway.configure("model: {provder: demo}\n")
    gateway.process.send_signal(signal.SIGHUP)
    gateway.until(lambda: "not reloaded" in str(gateway.call("status")["attention"]))
    trouble = gateway.call("status")["attention"][0]
    assert "config.yaml:1:9" in trouble
    assert "provider" in trouble
    assert gateway.say("hi")["reply"] == "third"


def test_a_new_configuration_that_names_what_cannot_be_used_changes_nothing(gateway: GatewayProcess) -> None:
    gateway.script({"user": "hi", "text": "first"})
    gateway.start()
    assert gateway.process
    script, no_folder = gateway.home.config.read_text(), gateway.home.config
    for text, named in (
        ("model: {script: nowhere.yaml}\n", "nowhere.yaml: error: cannot be read"),
        (f"{script}tools: {{roots: [{json.dumps(str(no_folder))}]}}\n", f"tools.roots: {no_folder}: File exists"),
    ):
        gateway.configure(text)
        gateway.process.send_signal(signal.SIGHUP)
        gateway.until(lambda named=named: named in str(gateway.call("status")["attention"]))  # type: ignore[misc]
        assert gateway.say("hi")["reply"] == "first"


def test_the_supervisor_hears_ready_status_watchdog_and_stopping(gateway: GatewayProcess, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
        supervisor.bind(str(tmp_path / "notify"))
        gateway.start(environ={"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "300000"})
        heard = supervisor.recv(1000)
        assert heard.startswith(b"EXTEND_TIMEOUT_USEC="), "a start may last, and the supervisor is to wait for it"
        while b"READY=1" not in heard:
            heard = supervisor.recv(1000)
        assert b"STATUS=ready" in heard
        while b"WATCHDOG=1" not in heard:
            heard = supervisor.recv(1000)
        gateway.stop()
        while b"STOPPING=1" not in heard:
            heard = supervisor.recv(1000)
        assert b"EXTEND_TIMEOUT_USEC=35000000" in heard


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("gateway: [", "config.yaml:"),
        ("gateway: {shutdown_timeout: soon}\n", "config.yaml:1:29"),
        ("gatway: {}\n", "did you mean"),
        ("\x00\x01\x02", "config.yaml:1"),
        ("a: &a [x, x]\nb: [*a, *a, *a]\n", "config.yaml:1"),
        ("x: " + "y" * 10_000_000, "config.yaml"),
    ],
)
def test_a_wrong_configuration_is_told_with_its_place_and_ends_with_78(
    gateway: GatewayProcess, text: str, told: str
) -> None:
    gateway.configure(text)
    ended = gateway.cli("run")
    assert ended.returncode == 78
    assert told in ended.stderr
    assert gateway.home.config.read_text() == text


def test_the_box_names_a_command_that_can_be_typed_where_no_path_leads_to_it(gateway: GatewayProcess) -> None:
    program = Path(sys.executable).parent / "hermes-gateway"
    environ = {**gateway.environ, "PATH": "/usr/bin:/bin", "COLUMNS": "200"}
    with subprocess.Popen([program, "run"], env=environ, stdout=subprocess.PIPE, text=True) as daemon:
        assert daemon.stdout
        shown = next(line for line in daemon.stdout if "talk to it" in line)
        daemon.terminate()
        daemon.communicate()
    assert f"{program} chat" in shown


def test_what_is_doubtful_in_the_configuration_is_said_at_the_start(gateway: GatewayProcess) -> None:
    gateway.configure("access: {everybody: [telegram]}\n")
    gateway.start()
    assert "everybody on telegram may speak to the gateway; list ids" in gateway.cli("logs").stdout


def test_names_of_tools_that_nothing_has_are_said_with_their_place_and_the_nearest(gateway: GatewayProcess) -> None:
    given = "[web_fech, 'mcp_*', mcp_shop_price, delegate, trusted, tell_fortunes, read_file]"
    agents = "agents: {main: {tools: [read_flie, time]}}\nhooks: {disabled: [audit-lgo]}\n"
    gateway.configure(f"access:\n  tools:\n    user: {given}\n    guest: all\n{agents}")
    gateway.start()
    logged = gateway.cli("logs").stdout
    assert "config.yaml:6:19: hooks.disabled: there is no hook audit-lgo; did you mean audit-log?" in logged
    assert "config.yaml:5:24: agents.main.tools: there is no tool read_flie; did you mean read_file?" in logged
    said = [line for line in gateway.cli("logs").stdout.splitlines() if "there is no tool" in line]
    assert len(said) == 3
    assert "config.yaml:3:11: access.tools.user: there is no tool web_fech; did you mean web_fetch?" in said[0]
    assert "there is no tool tell_fortunes; a plugin may bring one" in said[1]


def test_what_a_killed_command_left_in_the_temporary_folder_goes_at_the_next_start(
    gateway: GatewayProcess, tmp_path: Path
) -> None:
    ended = subprocess.Popen(["/bin/true"])
    ended.wait()
    names = [f"{ended.pid}-{'a' * 16}", f"{os.getpid()}-{'b' * 16}", "notes"]
    place = tmp_path / f"{TEMPORARY_OF_ALL}-{os.geteuid()}"
    for name in names:
        (place / name).mkdir(parents=True)
    gateway.start(environ={"TMPDIR": str(tmp_path)})
    assert [name for name in names if (place / name).exists()] == names[1:]


def test_a_home_in_a_file_and_a_world_writable_configuration_are_refused(gateway: GatewayProcess) -> None:
    gateway.configure("model: {}\n")
    gateway.home.config.chmod(0o666)
    refused = gateway.cli("run")
    assert (refused.returncode, "config.yaml" in refused.stderr) == (78, True)
    gateway.home.config.unlink()
    gateway.home.own_folder.rmdir()
    gateway.home.own_folder.write_text("not a directory")
    refused = gateway.cli("run")
    assert refused.returncode == 78
    assert str(gateway.home.own_folder) in refused.stderr
    assert gateway.home.own_folder.read_text() == "not a directory"


def test_a_home_with_a_long_name_has_its_socket_elsewhere(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / ("long" * 30) / "home") as gateway:
        gateway.home.root.parent.mkdir()
        gateway.start()
        assert len(os.fsencode(gateway.home.socket)) < 108
        assert gateway.cli("chat", "-m", "what is 2+2").stdout == "The result is 4.\n"


def test_a_gateway_that_cannot_start_says_so(gateway: GatewayProcess) -> None:
    gateway.configure("model: {script: nowhere.yaml}\n")
    ended = gateway.cli("run")
    assert ended.returncode == 78
    assert "nowhere.yaml" in ended.stderr
    assert "Traceback" not in ended.stderr
