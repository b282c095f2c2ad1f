"""A bar on the terminal during a long action: it shows the finished part if that is known, or else the time."""

import threading
from collections.abc import Callable
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

TICK = 0.25


def render_progress(
    what: str,
    measure: Callable[[], tuple[int, int]] | None,
    over: threading.Event,
    stream: TextIO,
    width: int | None,
    *,
    has_colours: bool,
) -> None:
    """Show the bar until the action is over, then remove it. `measure` returns the finished amount, and the total."""
    console = Console(
        file=stream, color_system="standard" if has_colours else None, force_terminal=True, width=width, highlight=False
    )
    told = [TaskProgressColumn("{task.percentage:>3.0f}%", markup=False)] if measure else []
    columns = (TextColumn("{task.description}", markup=False), BarColumn(20), *told, TimeElapsedColumn())
    with Progress(
        *columns,
        console=console,
        transient=True,
        auto_refresh=False,
        redirect_stdout=False,
        redirect_stderr=False,
    ) as bar:
        task = bar.add_task(what, total=None)
        while not over.wait(TICK):
            if measure:
                done, total = measure()
                bar.update(task, completed=done, total=total or None)
            bar.refresh()
