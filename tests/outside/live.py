"""A gateway that runs, with hooks, people and a bot on loopback: what it tells by `--json`, and on its socket."""

import json
import re
import sqlite3
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from anyio.from_thread import BlockingPortal, start_blocking_portal

from gateway.records import records
from gateway.testing import GatewayProcess
from gateway.testing.networks.wire import ANN
from tests.adapters.telegram_wire import TelegramWire
from tests.engine.nats_servers import run_servers
from tests.installer.signed import Signer
from tests.outside.manifest import manifest
from tests.outside.shapes import Facts
from tests.outside.tour import Kept, Refused, Tour

SUM = {"tool_calls": [{"name": "calculate", "args": {"expression": "6 * 7"}}]}
RUN = {"tool_calls": [{"name": "shell", "args": {"command": "echo x"}}]}
TURNS = (
    {"user": "sum", "answers": [SUM, {"text": "It is 42."}]},
    {"user": "run", "answers": [RUN, {"text": "It ran."}]},
    {"user": "", "text": "Well."},
)
DECIDER = """
def handle(event_type, context):
    print("heard", context["text"])
    if context["text"] == "boom":
        raise ValueError("this is too much")
    if context["text"] in ("which", "whose"):
        return {"decision": "ask", "prompt": "Which one?"}
    if context["text"] == "louder":
        context["text"] = "LOUDER"
        context.gateway.store.set("last", context["text"])
"""
COURIER = "def handle(event_type, context):\n    print('delivered')\n"
CONTEXT = """
import inspect
import json


def api(thing, at, names=()):
    for name in names or dir(thing):
        if not name.startswith("_") and hasattr(thing, name):
            value = getattr(thing, name)
            given = inspect.signature(value).parameters.values() if callable(value) else []
            yield at + name, [str(one).split(":")[0].split("=")[0].strip() for one in given]


def handle(event_type, context):
    found = dict(api(context, "context.", context.options["has"]))
    found |= dict(api(context.gateway, "context.gateway."))
    found |= dict(api(context.gateway.store, "context.gateway.store."))
    print(json.dumps({"api": found, "facts": context.gateway.facts()}))
"""
# What a handler's context has beside the fields of its event.
HAS = "options: {has: [ask, data, gateway, name, options, outcome, own, session, turn]}\n"
HOOKS: Mapping[str, tuple[str, str]] = {
    "decider": ("intercepts: [message:received]\nuses: [store]\n", DECIDER),
    "courier": ("events: [session:end]\ndelivery: durable\n", COURIER),
    "porter": ("events: [session:end]\ndelivery: durable\n", COURIER),
    "knower": (f"events: [agent:end]\nuses: [store, send, submit, emit]\n{HAS}", CONTEXT),
}
KEY = "agent:main:terminal:dm:main"
TOKEN = re.compile(r"\b[0-9a-f]{24}\b|\b[0-9]+$")  # what stands for a session or a place, or counts


def live(place: Path) -> dict[str, Facts]:
    """All that only a gateway that runs can tell, in homes below this place."""
    kept, wire = Kept(), TelegramWire()
    with (
        GatewayProcess(place / "home") as gateway,
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(wire.serving()),
    ):
        gateway.environ |= {**wire.environ, "TELEGRAM_HOME_CHANNEL": ANN, "XDG_RUNTIME_DIR": str(place)}
        tour = Tour(gateway, kept)
        furnish(gateway)
        home(tour, place)
        gateway.until(lambda: is_loaded(gateway))
        talk(tour)
        approvals(tour)
        tails(tour)
        strangers(tour, portal, wire)
        programs(tour)
        jobs(tour)
        sessions(tour)
        hooks(tour)
        letters(tour)
        networks(tour)
        others(tour)
        ended(tour)
    return {**kept.all(), "manifest": manifest(place)}


def furnish(gateway: GatewayProcess) -> None:
    """Hooks, and a journal in which some events could not be delivered."""
    gateway.script(*TURNS)
    for name, (wanted, code) in HOOKS.items():
        gateway.add_hook(name, {"HOOK.yaml": wanted, "handler.py": code})
    gateway.start()
    gateway.stop()
    with sqlite3.connect(gateway.home.journal) as journal:
        for number, hook in enumerate(["courier", "porter"] * 4):
            emitted = records.encode(records.EmittedEvent(name="session:end", fields={"id": f"e{number}"}))
            dead = records.DeadLetterRecord(
                what=f"hook:{hook}", reason="it is down", attempts=5, subject="x", seq=number, data=emitted
            )
            row = (f"gw.dead.hook-{hook}.{number}", time.time(), records.encode(dead))
            journal.execute("INSERT INTO log (subject, ts, data) VALUES (?, ?, ?)", row)
    journal.close()


def is_loaded(gateway: GatewayProcess) -> bool:
    states = {one["name"]: one["state"] for one in gateway.call("hooks.list")["hooks"]}
    return {states.get(name) for name in HOOKS} == {"loaded"}


def home(tour: Tour, place: Path) -> None:
    """Record the home's paths, and the messages about a faulty home and a gateway that does not run."""
    gateway = tour.gateway
    tour.kept.note("json", "status --json, where none runs", json.loads(gateway.cli("status", "--json").stdout))
    tour.show("config path")
    tour.kept.note("json", "service status --json", json.loads(gateway.cli("service", "status", "--json").stdout))
    paths = json.loads(gateway.cli("config", "path", "--json").stdout)
    for name in paths.keys() - {"schema_version"}:
        tour.kept.add("home", name, paths[name].replace(str(gateway.home.root), "HOME"))
    long = gateway.cli("--home", str(place / ("x" * 120)), "config", "path", "--json")
    far = Path(json.loads(long.stdout)["socket"])
    tour.kept.add("home", "socket of a home with a long name", str(far.with_stem("CRC").relative_to(place)))
    with GatewayProcess(place / "lame") as lame:
        lame.configure("sessions: {resett: idle}\n")
        lame.home.config.chmod(0o666)
        other = Tour(lame, tour.kept)
        other.show("config check")
        other.show("doctor")
        other.show("security audit")
    tour.show("config check")
    tour.show("config show", "--origin")
    for verb, *words in (
        ("set", "sessions.idle", "3h"),
        ("undo",),
        ("set", "sessions.idle", "3h"),
        ("unset", "sessions.idle"),
    ):
        tour.show(f"config {verb}", *words)
    gateway.start()


def talk(tour: Tour) -> None:
    """Turns, commands, a session that ends."""
    with tour.line() as line:
        first = {"text": "a sum please", "session": "main", "id": "m1"}
        assert line.ask("chat.say", first)["reply"] == "It is 42."
        line.ask("chat.say", {"text": "boom", "session": "aside"})
        for text in ("louder", "/new"):
            line.ask("chat.say", {"text": text, "session": "aside"})
    tour.verb("chat.say", text="a word", session="third", id="m2")
    tour.show("chat", "-m", "hello")
    for word in ("/start", "!help"):
        is_known = "Unknown command here" not in tour.ask("chat.say", {"text": word})["reply"]
        tour.kept.add("control socket", f"chat.say {word}", "is known" if is_known else "is not known")


def approvals(tour: Tour) -> None:
    """Record open approvals and questions, and their ends."""
    with tour.line() as line:
        for session in ("one", "two", "three"):
            line.ask("chat.say", {"text": "run it", "session": session})
        for text in ("which", "whose"):
            line.ask("chat.say", {"text": text, "session": text})
    tour.show("approvals")
    tour.show("approvals list")
    tour.verb("approvals.list")
    ids = [one["id"] for one in tour.gateway.call("approvals.list")["approvals"]]
    tour.verb("approvals.answer", id=ids[0], allowed=True)
    tour.show("approvals yes", ids[1])
    tour.show("approvals no", ids[2])
    questions = [one["id"] for one in tour.gateway.call("approvals.list")["questions"]]
    tour.verb("questions.answer", id=questions[0], text="that one")
    tour.show("approvals say", questions[1], "that one")


def tails(tour: Tour) -> None:
    """Record live events: a caller with names gets these alone."""
    with tour.line() as line:
        line.send("events.tail", {"names": ["agent:end"]})
        while not line.has_something():
            tour.ask("chat.say", {"text": "hello"})
        told = line.hear()
    tour.kept.note("control socket", f"events.tail tells {told['method']}", told["params"])
    heard = told["params"]["event"] == "agent:end"
    tour.kept.add("control socket", "events.tail(names)", "may be given" if heard else "counts for nothing")
    tail = tour.gateway.spawn("events", "tail", "-n", "1", "agent:end", "--json")
    while tail.poll() is None:
        tour.ask("chat.say", {"text": "hello"})
    tour.kept.note("json", "events tail --json", json.loads(tail.communicate()[0]))


def programs(tour: Tour) -> None:
    """Keys are made, listed and revoked, and the page is opened and closed, by the command and on the socket."""
    tour.show("keys new", "scraper", "--as", "operator")
    tour.verb("keys.create", name="front-end", role="user")
    tour.show("keys list")
    tour.show("open")
    tour.verb("web.open")
    tour.verb("web.end")
    tour.verb("keys.list")
    tour.show("keys revoke", "scraper")
    tour.verb("keys.revoke", name="front-end")
    tour.show("activity list")
    tour.verb("activity.list")
    tour.show("usage")
    tour.verb("usage")
    tour.show("reload")


def jobs(tour: Tour) -> None:
    """Jobs are made, seen, run and removed, by both spellings of the command and on the socket."""
    for spelling in ("jobs", "cron"):
        tour.show(f"{spelling} add", "tea", "--when", "every 1h", "--text", "hello")
        tour.show(f"{spelling} run", "tea")
        tour.gateway.until(lambda: bool(tour.gateway.call("jobs.history", {"name": "tea"})["moments"]))
        for verb in ("history", "show", "pause", "resume"):
            tour.show(f"{spelling} {verb}", "tea")
        tour.show(f"{spelling} list")
        tour.show(f"{spelling} import")
        tour.show(f"{spelling} remove", "tea")
    tour.verb("jobs.add", name="tea", when="every 1h", text="hello")
    for verb in ("show", "history", "pause", "resume", "run", "remove"):
        tour.verb(f"jobs.{verb}", name="tea")
    tour.verb("jobs.list")


def strangers(tour: Tour, portal: BlockingPortal, wire: TelegramWire) -> None:
    """Record two pairing requests, one approved by the socket, one by the command."""
    codes = []
    for number, person in enumerate(("6001", "6002"), 1):
        portal.call(partial(wire.write, "hello", by=person))
        tour.gateway.until(lambda number=number: len(wire.shown) >= number)  # type: ignore[misc]
        codes.append(wire.shown[-1].text.split("code is ")[1][:8])
    tour.show("pairing list")
    tour.show("pairing invite")
    tour.show("pairing uninvite", "#3")
    tour.show("status")
    tour.verb("pairing.list")
    tour.verb("pairing.approve", code=codes[0])
    tour.show("pairing approve", codes[1])
    tour.show("people list")
    tour.show("people show", "telegram:6001")
    tour.show("people forget", "telegram:6404", "--yes")
    tour.verb("people.list")
    tour.verb("people.show", person="telegram:6001")
    tour.verb("people.forget", person="telegram:6404")
    tour.show("pairing list")
    tour.verb("pairing.list")
    tour.verb("pairing.revoke", platform="telegram", user_id="6001")
    tour.show("pairing revoke", "telegram", "6002")


def sessions(tour: Tour) -> None:
    tour.verb("sessions.rebuild")
    tour.verb("sessions.list", platform="telegram", limit=50)
    tour.verb("sessions.list", limit=1)
    tour.verb("sessions.list")
    tour.verb("sessions.show", session=KEY)
    tour.verb("sessions.stop", session=KEY)
    tour.verb("sessions.search", query="hello", limit=1)
    tour.verb("sessions.export", session=KEY, format="json")
    tour.verb("sessions.statistics", days=0)
    tour.verb("sessions.statistics")
    tour.verb("sessions.delete", session="agent:main:terminal:dm:third")
    for command, words in {"list": (), "show": (KEY,), "search": ("sum",), "stop": (KEY,), "rebuild": ()}.items():
        tour.show(f"sessions {command}", *words)


def hooks(tour: Tour) -> None:
    """All that is said of hooks, and done with them."""
    said = {"text": "louder"}
    tour.verb("hooks.test", name="courier", event="session:start")
    tour.verb("hooks.test", name="decider", payload=said)
    tour.verb("hooks.fire", name="decider", event="message:received", payload=said)
    tour.show("hooks fire", "decider", "message:received", "--payload", '{"text": "boom"}')
    tour.show("hooks test", "decider", "--payload", '{"text": "boom"}')
    knows = tour.ask("hooks.test", {"name": "knower"})["trials"][0]["output"]
    known = json.loads(knows[knows.index("{") :])
    for name, given in known["api"].items():
        tour.kept.add("hook context", name, "there")
        for parameter in given:
            tour.kept.add("hook context", f"{name}({parameter})", "taken")
    tour.kept.note("hook context", "context.gateway.facts()", known["facts"])
    tour.verb("hooks.list")
    tour.verb("hooks.info", name="decider")
    for verb in ("disable", "enable", "reset", "trust"):
        tour.verb(f"hooks.{verb}", name="decider")
        tour.show(f"hooks {verb}", "decider")
    tour.verb("hooks.reload", name="decider")
    tour.show("hooks reload", "decider")
    tour.show("hooks reload")
    for command in ("info", "logs", "deps"):
        tour.show(f"hooks {command}", "decider")
    tour.show("hooks new", "fresh", "--event", "agent:end")
    needy = {"HOOK.yaml": "events: [agent:end]\nrequires: {bins: [no-such-program]}\nodd: 1\n", "handler.py": COURIER}
    tour.gateway.add_hook("needy", needy)
    tour.gateway.until(lambda: any(one["name"] == "needy" for one in tour.ask("hooks.list", {})["hooks"]))
    for command in ("check", "list", "stats"):
        tour.show(f"hooks {command}")
    for name in ("shut", "shut-too"):
        guard = {"HOOK.yaml": "intercepts: [tool:before]\nwhen: {tool: none}\n", "handler.py": COURIER}
        tour.gateway.add_hook(name, guard)
        tour.gateway.until(partial(is_said, tour, name, "state", "loaded"))
        (tour.gateway.home.hooks / name).chmod(0o777)
        tour.gateway.until(partial(is_said, tour, name, "reason", "everybody may write"))
    tour.verb("hooks.forget", name="shut")
    tour.show("hooks forget", "shut-too")
    offered(tour)


def is_said(tour: Tour, name: str, field: str, text: str) -> bool:
    """Return True if the list of hooks has this text about the hook."""
    return any(text in one[field] for one in tour.ask("hooks.list", {})["hooks"] if one["name"] == name)


def offered(tour: Tour) -> None:
    """Record a foreign hook: installed, frozen, updated, restored from the frozen file, removed."""
    root = tour.gateway.home.root.parent
    source, frozen = root / "offered", root / "frozen.json"
    source.mkdir()
    (source / "HOOK.yaml").write_text("events: [agent:end]\nuses: [store]\n")
    (source / "handler.py").write_text(COURIER)
    tour.show("hooks install", str(source), "--yes")
    frozen.write_text(json.dumps(tour.show("hooks freeze")))
    (source / "handler.py").write_text(f"{COURIER}\n# changed\n")
    tour.show("hooks outdated")
    tour.show("hooks update", "--yes")
    (source / "handler.py").write_text(COURIER)
    tour.show("hooks sync", str(frozen), "--yes")
    tour.show("hooks remove", "offered")
    listed(tour, source)


def listed(tour: Tour, source: Path) -> None:
    """It is published in an index, which is signed, known, searched and forgotten."""
    (source / "HOOK.yaml").write_text("description: A courier\nversion: 1.0.0\nevents: [agent:end]\n")
    for name in ("README.md", "LICENSE", "test_it.py"):
        (source / name).write_text("# here\n")
    index, signer = source.parent / "index.json", Signer()
    tour.show("hooks publish", str(source), str(index))
    signer.sign_file(index)
    tour.show("hooks index add", str(index), "--key", signer.line)
    tour.show("hooks index list")
    tour.show("hooks search", "courier")
    tour.show("hooks index remove", str(index))
    skill = source.parent / "coffee"
    skill.mkdir()
    (skill / "SKILL.md").write_text("---\nname: coffee\ndescription: How coffee is made.\n---\nGrind it.\n")
    (skill / "LICENSE").write_text("MIT\n")
    tour.show("skills publish", str(skill), str(index))
    tour.show("skills search", "coffee")
    tour.show("skills install", str(skill), "--yes")
    tour.show("skills list")
    tour.show("skills update", "--yes")
    tour.show("skills remove", "coffee")


def letters(tour: Tour) -> None:
    """Record dead letters: shown, delivered again, thrown away."""
    tour.verb("hooks.dead_letters", name="courier")
    numbers = {
        hook: [str(one["number"]) for one in tour.show("hooks dead-letters list", hook)["letters"]]
        for hook in ("courier", "porter")
    }
    for hook, verb in {"courier": "retry", "porter": "prune"}.items():
        first, second, *_ = numbers[hook]
        tour.show("hooks dead-letters show", hook, first)
        tour.show(f"hooks dead-letters {verb}", hook, first)
        asked = f"hooks.dead_{verb}"
        must = isinstance(tour.answered(asked, {"id": int(second)}), Refused)
        tour.kept.add("control socket", f"{asked}(name)", "must be given" if must else "counts for nothing")
        one = tour.answered(asked, {"name": hook, "id": int(second)})
        tour.kept.note("control socket", asked, one)
        said = "may be given" if one == {"count": 1} else "counts for nothing"
        tour.kept.add("control socket", f"{asked}(id)", said)
        tour.kept.note("control socket", asked, tour.answered(asked, {"name": hook}))
    tour.verb("events.replay", name="courier", names=["agent:end"])
    tour.verb("events.replay", name="courier", since=time.time() + 1000)
    tour.show("events replay", "courier")


def networks(tour: Tour) -> None:
    """The bot: what it sends, and whether it may."""
    file = tour.gateway.home.root / "chart.png"
    file.write_bytes(b"png")
    tour.verb("chat.send", wait=0.0, to="telegram:6003", text="the report", files=[str(file)])
    tour.show("send", "--to", "telegram", "hello")
    tour.verb("platform.list")
    tour.show("platform list")
    tour.verb("platform.probe", name="telegram")
    tour.show("platform probe", "telegram")
    tour.verb("platform.steer", verb="restart", name="telegram")
    for verb in ("restart", "resume", "pause"):  # paused, it holds back what is owed, and the end need not wait for it
        tour.show(f"platform {verb}", "telegram")


def others(tour: Tour) -> None:
    tour.verb("status")
    tour.show("status")
    tour.show("doctor")
    tour.show("doctor", "--hermes")
    tour.show("events list")
    tour.show("backup create", str(tour.gateway.home.backups / "copy.db"))
    tour.show("backup verify")
    for line in map(json.loads, tour.gateway.cli("logs", "--json").stdout.splitlines()):
        tour.kept.note("json", "logs --json", {key: line[key] for key in ("time", "level", "logger", "message")})


def ended(tour: Tour) -> None:
    """The end; what the journal then holds, and where, and putting a copy in its place."""
    tour.verb("stop")
    assert tour.gateway.process
    tour.gateway.process.communicate()
    with sqlite3.connect(tour.gateway.home.journal) as journal:
        for (subject,) in journal.execute("SELECT DISTINCT subject FROM log"):
            tour.kept.add("home", f"journal: {TOKEN.sub('TOKEN', subject)}", "a subject")
    journal.close()
    tour.show("backup restore", str(tour.gateway.home.backups / "copy.db"))
    with (
        run_servers(tour.gateway.home.root.parent / "nats", 1) as (server,),
        tour.gateway.home.config.open("a") as config,
    ):
        config.write(f"\nengine: {server.url}\n")
        config.flush()
        tour.show("migrate", "--to", "nats")
