"""Lets the agent carry out BOOT.md when the gateway has started, in a session of its own, and tells the home channel.

When it began is written down before it begins, so that no loop of restarts gets around the interval. What came of each
run is kept too: `hermes-gateway hooks info boot-md` shows it, and `hooks test boot-md` what would be done.
"""

import hashlib
import logging
import time
import unicodedata
from pathlib import Path

KEPT = 20  # runs
LONGEST = 100_000  # characters of BOOT.md
SHOWN = 200
SILENT = {"[SILENT]", "SILENT", "NO_REPLY", "NO REPLY", "[静默]", "静默", "[沉默]", "沉默", "无需回复"}
TASK = """\
The gateway has just started. Below is BOOT.md, which the owner of this machine wrote for this moment: carry it out.
Nobody is there to answer questions. Your answer is sent to the owner; if there is nothing that they need to know,
answer [SILENT] and nothing else.

{}"""

log = logging.getLogger("gateway.hooks.boot-md")


async def handle(event_type, context):
    store, options = context.gateway.store, context.options
    text = read(Path((await context.gateway.facts())["home"]) / "BOOT.md")
    if not text:
        return
    begun, digest = time.time(), hashlib.sha256(text.encode()).hexdigest()
    last = await store.get("last", {})
    if why := why_not(options, last, begun, digest):
        log.info("BOOT.md is not carried out: %s", why)
        await note(store, begun, "skipped", why)
        return
    await store.set("last", {**last, "began": begun})
    session = f"boot-md-{time.strftime('%Y%m%d-%H%M%S', time.gmtime(begun))}"
    done = await context.gateway.submit(TASK.format(text), session=session, wait=options["time_limit"])
    seconds, reply = time.time() - begun, done["reply"].strip()
    if done["status"] != "ok":
        log.warning("BOOT.md: %s after %.1f s: %s", done["status"], seconds, done["error"] or reply[:SHOWN])
        await note(store, begun, done["status"], done["error"] or reply[:SHOWN], seconds)
        return
    await store.set("last", {"began": begun, "done": digest})
    told = "silent" if is_silent(reply) else await tell(context.gateway, options["deliver"], reply)
    log.info("BOOT.md was carried out in %.1f s (%s): %s", seconds, told, reply[:SHOWN])
    await note(store, begun, "ok", f"{told}: {reply[:SHOWN]}", seconds)


def read(path):
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            text = file.read(LONGEST + 1).strip()
    except FileNotFoundError:
        return ""
    except OSError as error:
        log.warning("BOOT.md cannot be read: %s", error.strerror)
        return ""
    if len(text) > LONGEST:
        log.warning("BOOT.md has more than %d characters; the rest is left out", LONGEST)
    return text[:LONGEST]


def why_not(options, last, now, digest):
    since = now - last.get("began", 0)
    if 0 <= since < options["min_interval"]:  # a clock that was set back does not hold it up for ever
        return f"it was begun {since:.0f} s ago, and min_interval is {options['min_interval']:g} s"
    if options["policy"] == "once-per-change" and last.get("done") == digest:
        return "it was carried out before as it is, and the policy is once-per-change"
    return ""


def is_silent(reply):
    words = " ".join(reply.upper().split())
    while words and words[0] not in "[]" and unicodedata.category(words[0]).startswith("P"):
        words = words[1:]
    while words and words[-1] not in "[]" and unicodedata.category(words[-1]).startswith("P"):
        words = words[:-1]
    return not words or words in SILENT


async def tell(gateway, to, reply):
    if not to:
        return "told nobody"
    try:
        sent = await gateway.send(to, reply)
    except Exception as error:  # noqa: BLE001 - the answer stays in its session and in the log
        return f"told nobody, {error}"
    return f"sent to {sent['platform']}:{sent['chat_id']}"


async def note(store, begun, status, what, seconds=0.0):
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(begun))
    runs = await store.get("runs", [])
    await store.set("runs", [*runs, f"{at}  {status}, {seconds:.1f} s  {what}"][-KEPT:])
