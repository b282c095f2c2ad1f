"""Measure the page in a large home: how soon a room shows its first facts, and its longest task.

`.venv/bin/python -m bench.rooms [--conversations N] [--hooks N]`. A gateway with so many of both, and each room opened
three times in a real Chromium. The goals: first facts within a second, and no task of the browser over 100 ms.
"""

import argparse
import re
import shutil
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from bench import large_journal
from bench.options import parse_options
from gateway.testing import GatewayProcess

ROOMS = (
    *("overview", "chat", "conversations", "conversations/%3Fq%3Dlana", "hooks", "undelivered", "jobs", "people"),
    *("settings", "networks", "costs", "live", "logs", "deeds"),
)
REST_SECONDS = 1.0
PATIENCE = 60_000
HOOK = "description: one of many\nevents: [agent:end, 'message:*']\n"
HANDLER = "def handle(event_type, context):\n    pass\n"
OBSERVE = """
window.tasks = [0]
new PerformanceObserver(list => list.getEntries().forEach(one => window.tasks.push(one.duration)))
  .observe({ type: 'longtask', buffered: true })
"""


def build_home(gateway: GatewayProcess, conversations: int, hooks: int) -> None:
    """Conversations of two turns each, and hooks that do nothing."""
    large_journal.TURNS, large_journal.TURN_BYTES = 2, 1
    large_journal.build(gateway.home.journal, conversations * 2)
    for number in range(hooks):
        gateway.add_hook(f"hook-{number:04}", {"HOOK.yaml": HOOK, "handler.py": HANDLER})


def open_page(browser: Browser, gateway: GatewayProcess) -> tuple[Page, str]:
    link = re.search(r"http://\S+", gateway.cli("open").stdout)
    assert link
    page = browser.new_page()
    page.add_init_script(OBSERVE)
    page.goto(link[0])
    page.locator("#rooms li").first.wait_for(timeout=PATIENCE)
    return page, link[0].partition("/open")[0]


def measure(page: Page, address: str, look: float) -> tuple[float, float]:
    """Seconds until there is more than "Loading", and the milliseconds of the longest task."""
    page.goto("about:blank")
    time.sleep(REST_SECONDS)
    began = time.perf_counter()
    page.goto(address)
    page.locator("#room > :not(p)").first.wait_for(state="attached", timeout=PATIENCE)
    taken = time.perf_counter() - began
    time.sleep(look)
    return taken, max(page.evaluate("() => window.tasks"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--conversations", type=int, default=10_000)
    parser.add_argument("--hooks", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="how often each room is opened")
    parser.add_argument("--look", type=float, default=2.0, help="seconds in which more is drawn")
    args = parse_options(parser, conversations=100, hooks=10, rounds=1, look=0.3)
    program = shutil.which("chromium") or shutil.which("google-chrome")
    with (
        tempfile.TemporaryDirectory() as folder,
        GatewayProcess(Path(folder) / "home", forks=False) as gateway,
        sync_playwright() as playwright,
    ):
        build_home(gateway, args.conversations, args.hooks)
        gateway.start()
        gateway.until(lambda: len(gateway.call("sessions.list", {"limit": -1})["sessions"]) == args.conversations, 600)
        page, url = open_page(playwright.chromium.launch(executable_path=program), gateway)
        print(f"{args.conversations} conversations, {args.hooks} hooks")
        print(f"{'room':30}{'first facts':>12}{'longest task':>14}")
        for room in ROOMS:
            found = [measure(page, f"{url}/#{room}", args.look) for _ in range(args.rounds)]
            facts, task = sorted(taken for taken, _ in found)[args.rounds // 2], max(task for _, task in found)
            print(f"{room:30}{facts:10.2f} s{task:11.0f} ms")


if __name__ == "__main__":
    main()
