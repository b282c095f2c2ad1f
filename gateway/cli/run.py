"""`hermes-gateway run`: serve, in the foreground, until SIGTERM or Ctrl-C."""

import argparse
import logging
import os
import sys
from collections.abc import Mapping
from functools import partial

import anyio

from gateway import __version__
from gateway.cli.box import boxed
from gateway.cli.output import has_colours
from gateway.config.guard import prepare
from gateway.config.home import Home, process_environment
from gateway.config.loading import Configuration, load
from gateway.daemon.daemon import Gateway
from gateway.daemon.facts import facts
from gateway.daemon.parts import single
from gateway.daemon.run import run as serve
from gateway.logs.pipeline import LogPipeline, choose_formatter
from gateway.logs.redaction import Redactor
from gateway.logs.sinks import FileSink, StreamSink
from gateway.notify import Notifier

log = logging.getLogger("gateway.config")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--log-level", choices=("debug", "info", "warning", "error"), help="the least that is said")


def run(args: argparse.Namespace, home: Home) -> int:
    environ = process_environment()
    chosen = {"logs.level": args.log_level} if args.log_level else {}
    read = partial(load, home, environ, chosen)
    prepare(home)
    configuration = read()
    notifier = Notifier(environ.get("NOTIFY_SOCKET", ""))
    with logs(home, configuration, environ) as kept:

        def read_again() -> Configuration:
            fresh = read()
            kept.redactor.learn(fresh.secrets)
            kept.set_level(fresh.settings.logs.level)
            for finding in fresh.warnings:
                log.warning("%s: %s; %s", finding.place, finding.what, finding.remedy)
            return fresh

        try:
            return int(anyio.run(serve, home, read_again, notifier, watchdog(environ), announce))
        except BaseExceptionGroup as group:
            raise single(group) from None


def logs(home: Home, configuration: Configuration, environ: Mapping[str, str]) -> LogPipeline:
    """To the standard error, and to the file that `logs` reads."""
    wanted = configuration.settings.logs
    look = choose_formatter(sys.stderr, wanted.format, environ, colours=has_colours(sys.stderr))
    sinks = (StreamSink(sys.stderr, look), FileSink(home.log, wanted.size, wanted.keep))
    return LogPipeline(Redactor(configuration.secrets), sinks, wanted.level)


def watchdog(environ: Mapping[str, str]) -> float:
    """How long the supervisor waits for a sign of life, if the word was meant for this process."""
    meant_for = environ.get("WATCHDOG_PID", "")
    if meant_for and meant_for != str(os.getpid()):
        return 0.0
    microseconds = environ.get("WATCHDOG_USEC", "")
    return int(microseconds) / 1e6 if microseconds.isdecimal() else 0.0


async def announce(gateway: Gateway) -> None:
    """The box: what a person wants to know who has just typed `run`."""
    known = await facts(gateway)
    on = [f"{name} on" for name in known["platforms"]]
    off = [f"{name} off ({reason})" for name, reason in known["platforms_off"].items()]
    hooks = ", ".join(f"{count} {state}" for state, count in known["hooks"].items()) or "none"
    box = boxed(
        f"hermes-gateway {__version__}",
        [
            ("talk to it", "hermes-gateway chat"),
            ("socket", known["socket"]),
            ("model", known["model"]),
            ("platforms", "; ".join(["terminal on", *on, *off])),
            ("hooks", f"{hooks}; put folders into {gateway.home.hooks}"),
            ("home", known["home"]),
            ("stop", "Ctrl-C; a second one ends it at once"),
        ],
    )
    print(box, flush=True)
