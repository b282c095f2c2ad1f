"""An error in words: the one that counts, and its class where it is not one of ours."""

import pytest

from gateway.errors import AdapterError, describe_error, unwrap_error


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (AdapterError("the network is gone"), "the network is gone"),
        (AdapterError(""), "AdapterError"),
        (OSError("no route"), "OSError: no route"),
        (KeyError(), "KeyError"),
    ],
)
def test_one_of_ours_says_all_and_any_other_is_named(error: Exception, words: str) -> None:
    assert describe_error(error) == words


def test_of_a_group_the_error_counts_that_came_first() -> None:
    first, second = AdapterError("refused"), OSError("no route")
    group = ExceptionGroup("tasks", [ExceptionGroup("inner", [first]), second])
    assert unwrap_error(group) is first
    assert unwrap_error(first) is first
    assert describe_error(group) == "refused"
