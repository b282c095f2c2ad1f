"""The agent that a fresh gateway has: the demo model with real tools, a sample skill and a sub-agent."""

import ast
import math
import operator
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import anyio
import msgspec

from gateway.agent.agent import Agent
from gateway.agent.models.demo import DemoModel
from gateway.agent.skills import find_skills
from gateway.agent.toolbox.memory import Memory, make_memory_tools
from gateway.agent.tools import Tool, tool_from
from gateway.errors import AgentError

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

ListHooks: TypeAlias = Callable[[], str | Awaitable[str]]

SKILLS = Path(__file__).parent / "demo_skills"


def make_demo_agent(*, memory: Memory, hooks: ListHooks, model: DemoModel | None = None, tick: float = 1.0) -> Agent:
    """Make the demo: `hooks` lists the hooks, `tick` is the time between two numbers of the slow count."""
    model = model or DemoModel()
    helper = Agent("helper", model, description="a sub-agent that introduces itself", tools=(tool_from(time),))
    return Agent(
        "demo",
        model,
        description="the built-in demo",
        tools=(*_make_demo_tools(hooks, tick), *make_memory_tools(memory)),
        skills=find_skills((SKILLS,))[0],
        agents=(helper,),
    )


def _make_demo_tools(hooks: ListHooks, tick: float) -> tuple[Tool, ...]:
    """Make the demo's tools, apart from memory, skills and sub-agents."""

    async def list_hooks() -> str:
        """Say which hooks are running."""
        listed = hooks()
        return listed if isinstance(listed, str) else await listed

    async def count_slowly(to: Annotated[int, msgspec.Meta(ge=1, le=60)]) -> str:
        """Count up, a number at a time, so that there is something to stop."""
        for _ in range(to):
            await anyio.sleep(tick)
        return f"Counted to {to}: " + ", ".join(str(number) for number in range(1, to + 1)) + "."

    harmless = (time, calculate, count_slowly, fail_on_purpose)
    tools = [replace(tool_from(one, repeatable=True), is_trusted=True) for one in harmless]
    return (*tools, replace(tool_from(list_hooks, repeatable=True), changes="messages"))


async def time() -> str:
    """Say what time it is where the gateway runs."""
    return datetime.now().astimezone().strftime("%A, %d %B %Y, %H:%M:%S %Z")


async def calculate(expression: str) -> str:
    """Compute arithmetic: numbers, + - * / // % ^ and brackets."""
    return evaluate_expression(expression)


async def fail_on_purpose() -> str:
    """Fail, so that one can see what becomes of a failing tool."""
    raise AgentError("this tool always fails, on purpose")


def evaluate_expression(expression: str) -> str:
    """Return the value of `2 * (3 + 4)`, as text.

    Raises:
        AgentError: it is not arithmetic, or its value has no end.
    """
    if len(expression) > LONGEST:
        raise AgentError(f"longer than {LONGEST} characters")
    text = expression.replace("^", "**").replace("\u00d7", "*").replace("\u00f7", "/").strip()
    try:
        value = _evaluate_node(ast.parse(text, mode="eval").body)
    except ZeroDivisionError:
        raise AgentError("division by zero has no value") from None
    except (SyntaxError, MemoryError, RecursionError, OverflowError, TypeError, ValueError):
        raise AgentError(f"{expression!r} is not arithmetic that can be computed") from None
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
    raise AgentError("only numbers, + - * / // % ^ and brackets can be computed")


def _apply_operator(sign: ast.AST, *numbers: int | float) -> int | float:
    apply = OPERATORS.get(type(sign))
    if apply is None:
        raise AgentError("only numbers, + - * / // % ^ and brackets can be computed")
    if isinstance(sign, ast.Pow) and (abs(numbers[1]) > 1000 or abs(numbers[0]) > 10**6):
        raise AgentError("that power is too large")
    value = apply(*numbers)
    if not isinstance(value, int | float) or not math.isfinite(value) or abs(value) > LARGEST:
        raise AgentError("the value is too large, or not a real number")
    return value
