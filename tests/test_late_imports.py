"""Modules loaded late are whole, also if two threads begin with modules that import each other."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from gateway.late_imports import load_modules

ONE, OTHER = "late_and_whole", "late_and_whole_too"
SOURCE = (
    "import time\ntime.sleep(0.1)\nimport {other}\ntime.sleep(0.1)\nVALUE = 1\ndef find():\n    return {other}.VALUE\n"
)


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, other in ((ONE, OTHER), (OTHER, ONE)):
        (tmp_path / f"{name}.py").write_text(SOURCE.format(other=other))
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in (ONE, OTHER):
        sys.modules.pop(name, None)


def find_in(begin: Barrier, name: str) -> int:
    begin.wait()
    (module,) = load_modules(name)
    find: Callable[[], int] = module.find
    return find()


@pytest.mark.usefixtures("modules")
def test_two_threads_each_have_a_module_that_is_through() -> None:
    begin = Barrier(2)
    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(lambda name: find_in(begin, name), (ONE, OTHER))) == [1, 1]


ASKED = """
import threading
from gateway.late_imports import load_modules
other = threading.Thread(target=load_modules, args=("telegram",))
other.start()
(client,) = load_modules("gateway.agent.models.endpoint_client")
client.EndpointClient("https://127.0.0.1:1", {}, 1, 1, {})
other.join()
"""


def test_a_model_can_be_asked_while_a_network_is_loaded() -> None:
    done = subprocess.run([sys.executable, "-c", ASKED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


LOOKED = """
import sys
from gateway.agent.libraries import EXTRAS, is_installed
print([name for name in EXTRAS if not is_installed(name)], {"mcp", "pydantic", "PIL"} & {*sys.modules})
"""


def test_whether_an_extra_is_there_is_found_out_without_loading_it() -> None:
    """`status` asks; and one of them lies in folders that several packages share."""
    done = subprocess.run([sys.executable, "-c", LOOKED], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] set()"
