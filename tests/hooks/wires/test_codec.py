"""Whatever bytes a hook writes, the gateway's side gets messages or one clear error, in bounded steps."""

import json
import time
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.hooks.wires import codec
from gateway.hooks.wires.codec import BadMessage, LineDecoder, RpcMessage, decode_message
from gateway.worker.json_decoder import MAX_LINE_VALUES
from gateway.worker.protocol import MAX_LINE_BYTES

TEXT = st.text('aé"\\\n\0\u2028\U0001f600{}[],:', max_size=20)
NUMBER = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBER | TEXT,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXT, inner, max_size=5),
    max_leaves=20,
)
ODD_LINES = (
    b"[" * 100_000,
    b'{"result":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    b'{"id":' + b"1" * 5_000 + b"}",
    b'{"result":1e999}',
    b'{"result":"\\udc80"}',
    b'{"error":"text"}',
    b'{"method":7}',
    b'{"ask":{"name":1}}',
    b'{"changed":[]}',
    b'{"turn_bag":{"put":3}}',
    b"null",
    b"\xff\xfe",
)

# Numbers that the decoder of our library reads ten times as slowly as Python does, and one that is merely long.
SLOW_NUMBERS = {
    "small": b"2.2250738585072011e-308",
    "large": b"1.7976931348623158079372897e308",
    "long": b"2.2250738585072011" + b"3" * 60 + b"e-308",
    "whole": b"9" * 499,
}
MOST = 4  # times as long as Python takes for the same: the processor may be shared with others


def taken(lines: LineDecoder) -> list[RpcMessage]:
    """All messages, over as many turns of a loop as it takes."""
    found = []
    is_more = True
    while is_more:
        while (message := lines.take()) is not None:
            found.append(message)
        is_more = lines.renew()
    return found


def is_told_apart(line: bytes) -> bool:
    try:
        return isinstance(decode_message(line), RpcMessage)
    except BadMessage as error:
        return str(error).startswith("no message: ") and len(str(error)) < 1_000


@given(st.binary())
def test_any_bytes_are_a_message_or_garbled(line: bytes) -> None:
    assert is_told_apart(line)


@given(st.dictionaries(st.sampled_from(RpcMessage.__struct_fields__), JSON))
def test_any_object_with_our_members_is_a_message_or_garbled(members: dict[str, Any]) -> None:
    assert is_told_apart(msgspec.json.encode(members))


@pytest.mark.parametrize("line", ODD_LINES, ids=lambda line: line[:20].decode("latin-1"))
def test_odd_lines_are_garbled(line: bytes) -> None:
    with pytest.raises(BadMessage):
        decode_message(line)


@given(st.lists(st.binary(max_size=40), max_size=12))
def test_a_stream_of_any_chunks_never_raises_anything_else(chunks: list[bytes]) -> None:
    lines = LineDecoder()
    try:
        for chunk in chunks:
            lines.feed(chunk)
            taken(lines)
    except BadMessage:
        pass


@given(st.lists(JSON, max_size=8), st.integers(1, 30))
def test_messages_survive_however_they_are_cut(results: list[Any], size: int) -> None:
    stream = b"".join(codec.encode_response(number, result) for number, result in enumerate(results))
    lines, found = LineDecoder(), []
    for start in range(0, len(stream), size):
        lines.feed(stream[start : start + size])
        found += taken(lines)
    assert [(message.id, message.result) for message in found] == list(enumerate(results))


@given(TEXT, st.dictionaries(TEXT, JSON, max_size=3))
def test_a_request_is_read_as_it_was_written(method: str, params: dict[str, Any]) -> None:
    message = decode_message(codec.encode_request(7, method, codec.encode_fields(params), b'{"turn":"t"}'))
    assert (message.id, message.method, message.params) == (7, method, params)


def test_empty_lines_are_passed_over() -> None:
    lines = LineDecoder()
    lines.feed(b'\n  \r\n{"id":1}\r\n\n')
    assert [message.id for message in taken(lines)] == [1]


def test_one_turn_takes_a_bounded_number_of_lines() -> None:
    lines = LineDecoder()
    lines.feed(b'{"id":1}\n' * 1_000)
    first = 0
    while lines.take() is not None:
        first += 1
    assert first == codec.LINES_PER_TICK
    assert lines.renew()
    assert len(taken(lines)) == 1_000 - first


def test_one_turn_takes_a_bounded_number_of_bytes() -> None:
    lines = LineDecoder()
    lines.feed(codec.encode_response(1, "x" * codec.BYTES_PER_TICK) * 2)
    assert lines.take() is not None
    assert lines.take() is None
    assert lines.renew()
    assert lines.take() is not None


def test_a_line_that_never_ends_is_refused_before_it_fills_the_memory() -> None:
    lines = LineDecoder()

    def feed_on() -> None:
        for _ in range(200):
            lines.feed(b"x" * 65_536)
            taken(lines)

    with pytest.raises(BadMessage, match="8 MB"):
        feed_on()


def test_a_whole_line_that_is_too_long_is_refused() -> None:
    lines = LineDecoder()
    lines.feed(codec.encode_response(1, "x" * MAX_LINE_BYTES))
    with pytest.raises(BadMessage, match="8 MB"):
        lines.take()


def test_a_line_of_very_many_values_is_refused_before_it_is_decoded() -> None:
    lines = LineDecoder()
    lines.feed(b'{"result":[' + b"{}," * 200_000 + b"{}]}\n")
    with pytest.raises(BadMessage, match="100000 values"):
        lines.take()


@pytest.mark.parametrize("number", SLOW_NUMBERS.values(), ids=SLOW_NUMBERS)
def test_eight_megabytes_of_numbers_are_read_in_a_blink(number: bytes) -> None:
    count = min(MAX_LINE_VALUES - 10, (MAX_LINE_BYTES - 100) // (len(number) + 1))
    line = b'{"result":[' + b",".join([number] * count) + b"]}\n"
    ours, pythons = [], []
    for _ in range(3):
        lines = LineDecoder()
        lines.feed(line)
        began = time.thread_time()
        message = lines.take()
        ours.append(time.thread_time() - began)
        began = time.thread_time()
        json.loads(line)
        pythons.append(time.thread_time() - began)
    assert min(ours) < MOST * min(pythons)
    assert message is not None
    assert set(message.result) == {float(number) if b"." in number else int(number)}


def test_whole_numbers_of_thousands_of_digits_are_refused_where_they_are_many() -> None:
    lines = LineDecoder()
    long = b"9" * 4000
    lines.feed(b'{"result":[' + b",".join([long] * 500) + b"]}\n")
    message = lines.take()
    assert message is not None
    assert set(message.result) == {int(long)}
    lines = LineDecoder()
    lines.feed(b'{"result":[' + b",".join([long] * 1800) + b"]}\n")
    with pytest.raises(BadMessage, match="digits in long rows"):
        lines.take()


def test_a_long_text_is_no_great_number_of_values() -> None:
    lines = LineDecoder()
    lines.feed(codec.encode_response(1, "x" * 7_000_000))
    message = lines.take()
    assert message is not None
    assert len(message.result) == 7_000_000


def test_no_meta_leaves_plain_json_rpc() -> None:
    assert msgspec.json.decode(codec.encode_request(1, "x", b"{}")) == {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "x",
        "params": {},
    }
