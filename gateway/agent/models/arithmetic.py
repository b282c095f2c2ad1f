"""Arithmetic on text that people write: a parser of numbers, signs and brackets, and nothing else."""

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

OPERATORS: Mapping[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}
LONGEST = 200
LARGEST = 10**300


def evaluate_expression(expression: str) -> str:
    """The value of `2 * (3 + 4)`, as text.

    Raises:
        ValueError: it is no arithmetic, or its value has no end.
    """
    if len(expression) > LONGEST:
        raise ValueError(f"longer than {LONGEST} characters")
    text = expression.replace("^", "**").replace("\u00d7", "*").replace("\u00f7", "/").strip()
    try:
        value = _evaluate_node(ast.parse(text, mode="eval").body)
    except ZeroDivisionError:
        raise ValueError("division by zero has no value") from None
    except (SyntaxError, MemoryError, RecursionError, OverflowError, TypeError):
        raise ValueError(f"{expression!r} is no arithmetic that can be computed") from None
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        value = int(value)
    return str(value)


def _evaluate_node(node: ast.AST) -> int | float:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return number
        case ast.BinOp(left=left, op=sign, right=right):
            return _apply_operator(sign, _evaluate_node(left), _evaluate_node(right))
        case ast.UnaryOp(op=sign, operand=operand):
            return _apply_operator(sign, _evaluate_node(operand))
    raise ValueError("only numbers, + - * / // % ^ and brackets can be computed")


def _apply_operator(sign: ast.AST, *numbers: int | float) -> int | float:
    apply = OPERATORS.get(type(sign))
    if apply is None:
        raise ValueError("only numbers, + - * / // % ^ and brackets can be computed")
    if isinstance(sign, ast.Pow) and (abs(numbers[1]) > 1000 or abs(numbers[0]) > 10**6):
        raise ValueError("that power is too large")
    value = apply(*numbers)
    if not isinstance(value, int | float) or not math.isfinite(value) or abs(value) > LARGEST:
        raise ValueError("the value is too large, or not a real number")
    return value
