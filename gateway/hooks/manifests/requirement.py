"""The Python packages in a hook's `requires`, as PEP 440 and PEP 508 write them."""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from packaging.requirements import Requirement

# Imported when the first hook needs a Python package: the import costs as much of the start as a hundred hooks.
REQUIREMENT_LIBRARY = "packaging.requirements"


def read_requirement(text: str) -> "Requirement":
    """Read a package, its versions, and perhaps a condition or an address. Raises ValueError for any other text."""
    try:
        requirement: Requirement = importlib.import_module(REQUIREMENT_LIBRARY).Requirement(text)
    except ValueError as error:
        raise ValueError(str(error).partition("\n")[0]) from None
    return requirement


def parse_requirement(text: str) -> "Requirement":
    """Read a package and its versions, as PEP 440 writes them.

    Raises ValueError with the reason, also for a condition or an address: both are refused, never guessed.
    """
    requirement = read_requirement(text)
    if requirement.marker or requirement.url:
        raise ValueError("conditions and addresses are not read here")
    return requirement
