"""A secret is shown only to code that asks for it by name."""

import copy
import json
import logging
import pickle

import msgspec
import pytest
import yaml

from gateway.config.fields import Secret

CANARY = "canary-value-123"


@pytest.mark.row("T28")
def test_a_secret_is_in_no_text() -> None:
    secret = Secret(CANARY)
    record = logging.LogRecord("x", logging.INFO, "x", 1, "%s %r", (secret, secret), None)
    texts = [repr(secret), str(secret), f"{secret}", f"{secret!r}", repr([secret]), record.getMessage()]
    assert not [text for text in texts if CANARY in text]
    assert secret.reveal() == CANARY


@pytest.mark.row("T28")
@pytest.mark.parametrize("write", [json.dumps, msgspec.json.encode, pickle.dumps, yaml.safe_dump, copy.deepcopy])
def test_a_secret_is_written_by_nothing(write: object) -> None:
    with pytest.raises((TypeError, yaml.YAMLError)):
        write(Secret(CANARY))  # type: ignore[operator]


def test_a_secret_is_as_true_as_its_value() -> None:
    assert not Secret()
    assert Secret("x")
    assert (str(Secret()), repr(Secret())) == ("", "Secret()")
    assert Secret("a") == Secret("a") != Secret("b")
    assert len({Secret("a"), Secret("a")}) == 1
