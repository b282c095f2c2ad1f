"""A gateway whose clocks are all set ahead, or back, by a test."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from gateway.testing import GatewayProcess
from tests.chaos.machine import set_clock


class MovedGateway(GatewayProcess):
    """`passed`: by so many seconds its clocks are ahead at first."""

    def __init__(self, root: Path, passed: float = 0.0) -> None:
        super().__init__(root, forks=False)
        self._clock, self._passed = root.parent / "clock", passed
        set_clock(self._clock, 0.0, passed)

    def spawn(self, *args: str, environ: Mapping[str, str] | None = None) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "tests.chaos.machine", str(self._clock), *args]
        to = subprocess.DEVNULL if args[0] == "run" else subprocess.PIPE
        return subprocess.Popen(command, env={**self.environ, **(environ or {})}, stdout=to, stderr=to, text=True)

    def pass_time(self, seconds: float) -> None:
        """Move the clock on: work that is due by then has begun when this returns, and is done a little later."""
        self._passed += seconds
        set_clock(self._clock, 0.0, self._passed)
        self.say("hello")
