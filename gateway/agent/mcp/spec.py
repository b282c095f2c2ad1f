"""What is known of a server of tools before it is reached."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class McpSpec:
    """A program (`command`) or an address (`url`). `tools` are those that are offered, by the server's own names.

    A program sees PATH, HOME and the like, and of all else only `env`; it runs in `folder`. `timeout` is how long one
    call may take, `output_limit` how much of its result the model gets to see.
    """

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    folder: Path | None = None
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    tools: tuple[str, ...] | None = None
    timeout: float = 60.0
    output_limit: int = 64_000
