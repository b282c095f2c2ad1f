"""`hermes-gateway run`: serve, in the foreground, until SIGTERM or Ctrl-C."""

import argparse
import logging
import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from gateway import __version__
from gateway.adapters.shared.folder import load_settings_schema
from gateway.backup.restore_plan import resume_restore
from gateway.cli.disk_room import describe_disk_error
from gateway.cli.layout import render_box
from gateway.cli.output import fold_log, has_colours
from gateway.cli.program import apply_program_name, close_output, get_program_name
from gateway.config.home import Home, get_process_environment
from gateway.config.loading import Configuration, load_configuration
from gateway.config.node_settings import NODE_ROLES
from gateway.config.permissions import prepare_home
from gateway.daemon.disk_configuration import DiskConfiguration, stamp_files
from gateway.daemon.own_process import check_thread_limit
from gateway.daemon.process import run_daemon as serve
from gateway.errors import ExitCode, unwrap_error
from gateway.logs.pipeline import LogPipeline, choose_formatter
from gateway.logs.sinks import FileSink, StreamSink
from gateway.notify import Notifier, read_watchdog
from gateway.upgrade.start import LoadedProgram, settle_upgrade, try_upgrade

log = logging.getLogger("gateway.config")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--log-level", choices=("debug", "info", "warning", "error"), help="the lowest level that is logged"
    )
    parser.add_argument("--roles", help=f"what it does, of {','.join(NODE_ROLES)}; by default all; see docs/cluster.md")


def run(args: argparse.Namespace, home: Home) -> int:
    supervisor = get_process_environment().get("NOTIFY_SOCKET", "")
    notifier, loaded = Notifier(supervisor), LoadedProgram(Path(sys.prefix))
    with try_upgrade(home, Path(sys.prefix), restart_program, notifier) as note:
        code = run_gateway(args, home, note, notifier, loaded)
    if code == ExitCode.RESTART and not supervisor:  # the supervisor would take this for an end
        restart_program()
    return code


def run_gateway(args: argparse.Namespace, home: Home, note: str, notifier: Notifier, loaded: LoadedProgram) -> int:
    environ = get_process_environment()
    options = {"logs.level": args.log_level, "node.roles": args.roles}
    chosen = {setting: said for setting, said in options.items() if said is not None}
    read = partial(load_configuration, load_settings_schema(), home, environ, chosen)
    check_thread_limit()
    prepare_home(home)
    resume_restore(home)
    stamps, configuration = stamp_files(home), read()
    with open_logs(home, configuration, environ) as kept:
        if note:
            log.warning("%s", note)

        def adopt(fresh: Configuration) -> Configuration:
            fresh = replace(fresh, redactor=kept.redactor)  # one redactor for the process, which forgets nothing
            kept.redactor.learn(fresh.secrets)
            kept.set_level(fresh.settings.logs.level)
            for finding in fresh.warnings:
                log.warning("%s: %s; %s", finding.place, finding.what, finding.remedy)
            return fresh

        watchdog = read_watchdog(environ.get("WATCHDOG_USEC", ""), environ.get("WATCHDOG_PID", ""))
        disk = DiskConfiguration(read, home, adopt(configuration), stamps)
        try:
            return int(anyio.run(serve, disk, lambda: adopt(read()), notifier, watchdog, print_banner, loaded.check))
        except (BaseExceptionGroup, OSError) as error:
            raise describe_disk_error(unwrap_error(error), home) from None


def open_logs(home: Home, configuration: Configuration, environ: Mapping[str, str]) -> LogPipeline:
    """Open the logs: the standard error, and the file that `hermes-gateway logs` reads."""
    wanted = configuration.settings.logs
    look = choose_formatter(sys.stderr, wanted.format, environ, colours=has_colours(sys.stderr))
    if sys.stderr.isatty() and wanted.format != "json":
        shown = StreamSink(sys.stderr, lambda line: fold_log(sys.stderr, apply_program_name(look(line))))
    else:
        shown = StreamSink(sys.stderr, look)
    sinks = (shown, FileSink(home.log, wanted.size, wanted.keep))
    return LogPipeline(configuration.redactor, sinks, wanted.level, configuration.schema.noisy_loggers)


def restart_program() -> None:
    """Replace this process by the program that is in place now: its environment may have changed since the start."""
    os.execv(sys.executable, [sys.executable, "-P", "-m", "gateway.cli", *sys.argv[1:]])  # noqa: S606 - ourselves


async def print_banner(home: Home, known: Mapping[str, Any]) -> None:
    """Print the box with the facts that a person wants after `run`, from the gateway's status."""
    settle_upgrade(home, Path(sys.prefix))
    on = [f"{name} on" for name in known["platforms"]]
    off = [f"{name} off ({reason})" for name, reason in known["platforms_off"].items()]
    hooks = ", ".join(f"{count} {state}" for state, count in known["hooks"].items()) or "none"
    page = [("look at it", f"{get_program_name()} open")] if known["web"]["url"] else []
    box = render_box(
        f"hermes-gateway {__version__}",
        [
            ("talk to it", f"{get_program_name()} chat"),
            *page,
            ("socket", known["socket"]),
            ("model", known["model"]),
            ("platforms", "; ".join(["terminal on", *on, *off])),
            ("hooks", f"{hooks}; put folders into {home.hooks}"),
            ("home", known["home"]),
            ("stop", f"{get_program_name()} stop, or Ctrl-C; a second one ends it at once"),
        ],
    )
    try:
        print(box, flush=True)
    except OSError:  # its reader is gone, or its disk is full: neither is the daemon's end
        close_output(sys.stdout)
