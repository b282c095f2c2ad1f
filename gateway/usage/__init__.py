"""What calls of models used: counted with the journal's own appends, summed by day, held against budgets."""

from gateway.usage.budgets import BudgetState
from gateway.usage.call_usage import BudgetPort, CallUsage
from gateway.usage.totals import RunningTotals
from gateway.usage.turn_usage import TurnUsage, UsageOrigin, origin_of
from gateway.usage.usage_journal import UsageJournal

__all__ = [
    "BudgetPort",
    "BudgetState",
    "CallUsage",
    "RunningTotals",
    "TurnUsage",
    "UsageJournal",
    "UsageOrigin",
    "origin_of",
]
