"""The supervisor's messages, on a real datagram socket."""

import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gateway.notify import Notifier, read_watchdog


@pytest.fixture(params=["path", "abstract"])
def supervisor(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Notifier, Callable[[], str]]]:
    """A notifier, and what arrives at the socket it speaks to."""
    name = f"@gateway-test-{os.getpid()}" if request.param == "abstract" else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as inbox:
        inbox.bind("\0" + name[1:] if name.startswith("@") else name)
        yield Notifier(name), lambda: inbox.recv(4096).decode()


def test_ready_carries_the_status_in_one_datagram(supervisor: tuple[Notifier, Callable[[], str]]) -> None:
    notifier, heard = supervisor
    assert notifier.ready("3 platforms up")
    assert heard() == "READY=1\nSTATUS=3 platforms up"


def test_each_word_is_what_systemd_expects(supervisor: tuple[Notifier, Callable[[], str]]) -> None:
    notifier, heard = supervisor
    said = [notifier.ready(), notifier.alive(), notifier.stopping(1.5, "draining")]
    assert all(said)
    assert [heard() for _ in said] == [
        "READY=1",
        "WATCHDOG=1",
        "STOPPING=1\nEXTEND_TIMEOUT_USEC=1500000\nSTATUS=draining",
    ]


def test_a_status_cannot_smuggle_a_second_assignment(supervisor: tuple[Notifier, Callable[[], str]]) -> None:
    notifier, heard = supervisor
    assert notifier.status("chat named\nMAINPID=1")
    assert heard() == "STATUS=chat named MAINPID=1"


def test_a_reload_is_stamped_with_the_monotonic_clock(supervisor: tuple[Notifier, Callable[[], str]]) -> None:
    notifier, heard = supervisor
    before = time.monotonic_ns() // 1000
    assert notifier.reloading()
    first, stamp = heard().split("\nMONOTONIC_USEC=")
    assert first == "RELOADING=1"
    assert before <= int(stamp) <= time.monotonic_ns() // 1000


@pytest.mark.parametrize("address", ["", "/nowhere/notify", "@nobody-listens-here", "x" * 300, "with\0nul"])
def test_without_a_listener_it_says_so_and_never_raises(address: str) -> None:
    assert not Notifier(address).ready("serving")


def test_a_supervisor_that_does_not_read_never_holds_the_daemon(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as inbox:
        inbox.bind(str(tmp_path / "notify"))
        notifier = Notifier(str(tmp_path / "notify"))
        assert not all(notifier.alive() for _ in range(10_000))


@pytest.mark.parametrize(
    ("usec", "pid", "seconds"),
    [
        ("60000000", "", 60.0),
        ("60000000", str(os.getpid()), 60.0),
        ("60000000", "1", 0.0),
        ("", "", 0.0),
        ("0", "", 0.0),
        ("soon", "", 0.0),
    ],
    ids=["of nobody", "ours", "of another", "none", "never", "no number"],
)
def test_the_watchdog_counts_for_the_process_that_it_names(usec: str, pid: str, seconds: float) -> None:
    assert read_watchdog(usec, pid) == seconds
