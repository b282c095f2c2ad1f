"""The spoken part of an answer: the words, without marks, code, tables and addresses; and never for long."""

import time

import pytest

from gateway.voice.answer_text import LONGEST, extract_words


@pytest.mark.parametrize(
    ("markdown", "words"),
    [
        ("# Today ##\n\nIt is **warm**, _mostly_.", "Today\nIt is warm, mostly."),
        ('- [x] bread\n- [the milk](http://shop/milk "now")\n1. eggs', "bread\nthe milk\neggs"),
        ("> he said ~~no~~ ||yes||", "he said no yes"),
        ("Run `make`:\n```sh\nmake all\n```\nand wait.", "Run make:\nand wait."),
        ("~~~~\ncode\n~~~\nstill\n~~~~\nwords", "words"),
        ("| a | b |\n|---|---|\n| 1 | 2 |\n\nThat was all.", "That was all."),
        ("See https://www.example.com/a/b?c=d#e.", "See example.com"),
        ("![a cat](cat.png) <b>big</b> \\*stars\\* snake_case", "a cat big *stars* snake_case"),
        ("***\n---\n🎉", ""),
        ("```\nonly code\n```", ""),
        ("a\x1b[31mred\x07", "a[31mred"),
    ],
)
def test_words_are_read_and_marks_are_not(markdown: str, words: str) -> None:
    assert extract_words(markdown) == words


def test_what_is_too_long_ends_with_a_sentence_a_word_or_somewhere() -> None:
    assert extract_words("One. Two! Three three", 12) == "One. Two!"
    assert extract_words("one two three", 9) == "one two"
    assert extract_words("x" * 20, 9) == "x" * 9
    assert len(extract_words("word " * 10_000)) <= LONGEST


@pytest.mark.parametrize("piece", ["[", "*", "_ ", "<a", "`", "> ", "http://", "\\", "[a](b", "- ", "=-", "|", "1) "])
def test_the_longest_text_takes_no_long_time(piece: str) -> None:
    begun = time.process_time()
    extract_words(piece * 50_000)
    assert time.process_time() - begun < 5
