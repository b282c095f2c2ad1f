"""The search of the web, by a real SearXNG that the daemon asks.

An engine of its own kind `json_engine` finds what a stub on loopback has, so that nobody else's search is needed. The
source comes from `SEARXNG`, a folder or an address for git, or else from where SearXNG is developed. The short run
tries nothing without `SEARXNG`, since what others develop does not decide about a change of ours.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

from gateway.testing import GatewayProcess
from gateway.testing.patience import wait_until
from gateway.worker.tool_names import FOUND
from tests.http_server import QuietHandler, serving
from tests.proof_table import Row, Trial, make_row

COLUMNS = ("what", "promised", "came")
WIDEST = 44
SOURCE = "https://github.com/searxng/searxng"
DEAD = 9  # a port at which nothing listens
RESULTS = [
    {"url": f"https://tea.example/{place}", "title": f"Tea {place} <b>", "content": 'words of others "}]}'}
    for place in range(8)
]
SETTINGS: dict[str, Any] = {
    "use_default_settings": {"engines": {"keep_only": []}},
    "server": {"bind_address": "127.0.0.1", "secret_key": "of a proof", "limiter": False},
    "outgoing": {"request_timeout": 2.0},
}
ENGINE = {"engine": "json_engine", "results_query": "results", "url_query": "url", "title_query": "title"}


class Stub(QuietHandler):
    """The index that the engine searches."""

    def do_GET(self) -> None:  # noqa: N802 - as the library calls it
        self.answer(json.dumps({"results": RESULTS}).encode())


def prove(trial: Trial) -> Iterator[Row]:
    source = os.environ.get("SEARXNG", "" if trial.is_short else SOURCE)
    if not source:
        yield Row(("not tried", "", ""), remarks=("SEARXNG names no source of SearXNG",))
        return
    python = install(source, trial.folder / "searxng", trial)
    with serving(Stub) as stub:
        index = stub.server_address[1]
        yield from prove_results(trial, python, index)
        with searxng(trial.folder / "html", python, index, ["html"]) as url:
            said = ask(trial.folder / "home-html", url, {"query": "tea"})
            needed = "add `json` to `search.formats` of its settings.yml"
            yield make_row("without the format json", *told(said, needed))
        with searxng(trial.folder / "dead", python, DEAD, ["html", "json"]) as url:
            said = ask(trial.folder / "home-dead", url, {"query": "tea"})
            yield make_row("its engine fails", *told(said, "failed: stub ("))


def prove_results(trial: Trial, python: Path, index: int) -> Iterator[Row]:
    with searxng(trial.folder / "json", python, index, ["html", "json"]) as url:
        for args, most in (
            ({"query": "tea"}, 5),
            ({"query": "tea", "limit": 2}, 2),
            ({"query": "tea", "limit": 50}, 8),
        ):
            said = ask(trial.folder / f"home-{most}", url, args)
            line, _, found = said.partition("\n")
            rows = json.loads(found)["data"]["web"] if line == FOUND else []
            same = [(one["url"], one["position"]) for one in rows]
            wanted = [(one["url"], place) for place, one in enumerate(RESULTS[:most], 1)]
            yield make_row(f"results of {json.dumps(args)}", str(most), str(len(rows)), same == wanted)
    said = ask(trial.folder / "home-gone", url, {"query": "tea"})
    yield make_row("SearXNG is gone", *told(said, "could not be reached"))


def told(said: str, needed: str) -> tuple[str, str, bool]:
    return needed, needed if needed in said else said[:120], needed in said


def install(source: str, folder: Path, trial: Trial) -> Path:
    trial.tell(f"installing SearXNG from {source}")
    run("git", "clone", "-q", "--depth", "1", source if "://" in source else Path(source).as_uri(), str(folder))
    run(sys.executable, "-m", "venv", str(folder / "env"))
    python = folder / "env" / "bin" / "python"
    run(str(python), "-m", "pip", "install", "-q", "-r", str(folder / "requirements.txt"))
    return python


def run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"{' '.join(command[:4])} ended with {done.returncode}: {done.stderr[-500:]}")


@contextmanager
def searxng(folder: Path, python: Path, index: int, formats: Sequence[str]) -> Iterator[str]:
    """Run SearXNG, and give its address; its engine searches what listens at this port."""
    with serving(BaseHTTPRequestHandler) as taken:
        port = taken.server_address[1]
    folder.mkdir()
    engine = {**ENGINE, "name": "stub", "shortcut": "st", "content_query": "content", "enable_http": True}
    engine |= {"search_url": f"http://127.0.0.1:{index}/?q={{query}}", "categories": ["general"]}
    settings = {**SETTINGS, "search": {"formats": [*formats]}, "engines": [engine]}
    settings["server"] = {**SETTINGS["server"], "port": port}
    (folder / "settings.yml").write_text(json.dumps(settings))
    environ = {"PATH": os.environ["PATH"], "SEARXNG_SETTINGS_PATH": str(folder / "settings.yml"), "HOME": str(folder)}
    with ExitStack() as stack:
        log = stack.enter_context((folder / "log").open("wb"))
        process = subprocess.Popen(
            [python, "-m", "searx.webapp"], env=environ, cwd=python.parents[2], stdout=log, stderr=log
        )
        stack.callback(process.wait)
        stack.callback(process.terminate)
        wait_until(lambda: process.poll() is not None or answers(f"http://127.0.0.1:{port}/healthz"))
        if process.poll() is not None:
            raise OSError(f"SearXNG ended: {(folder / 'log').read_text()[-800:]}")
        yield f"http://127.0.0.1:{port}"


def answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=5) as found:
            return bool(found.status == 200)
    except (URLError, OSError):
        return False


def ask(home: Path, url: str, args: dict[str, Any]) -> str:
    """Have the model of a real gateway search; return what the tool gave it."""
    with GatewayProcess(home) as gateway:
        calls = [{"name": "web_search", "args": args}]
        turn = {"user": "search", "answers": [{"tool_calls": calls}, {"text": "so it is"}]}
        gateway.script(turn, settings=f"tools: {{search: {{provider: searxng, url: {json.dumps(url)}}}}}\n")
        gateway.start()
        assert gateway.say("search")["reply"] == "so it is"
        shown = gateway.call("sessions.show", {"session": "agent:main:terminal:dm:main"})
        gateway.stop()
    return next(str(one["content"]) for one in shown["entries"] if one["role"] == "tool")
