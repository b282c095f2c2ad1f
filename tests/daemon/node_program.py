"""A gateway that works beside others on the journal of a NATS server, as a program: with that server's address."""

import logging
import sys
from pathlib import Path

import anyio
import anyio.lowlevel

from gateway.adapters.shared.folder import load_settings_schema
from gateway.config.home import Home, get_process_environment
from gateway.config.loading import load_configuration
from gateway.config.permissions import prepare_home
from gateway.daemon.control_verbs import build_verbs
from gateway.daemon.journal import find_home
from gateway.daemon.journal_lock import join_journal
from gateway.daemon.shutdown import Shutdown, handle_signals
from gateway.daemon.startup import open_gateway_on
from gateway.engine.nats.engine import open_nats


async def serve(url: str) -> None:
    environ = get_process_environment()
    home, shutdown = Home(Path(environ["HERMES_HOME"])), Shutdown(2.5)
    configuration = load_configuration(load_settings_schema(), home, environ)
    prepare_home(home)
    async with (
        await open_nats(url) as engine,
        join_journal(engine, find_home(home, configuration)),
        anyio.create_task_group() as tasks,
    ):
        await tasks.start(handle_signals, shutdown, anyio.lowlevel.checkpoint)
        async with open_gateway_on(engine, home, configuration, shutdown, build_verbs):
            await shutdown.wait()
        tasks.cancel_scope.cancel()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(process)d %(name)s %(message)s")
    anyio.run(serve, sys.argv[1])
