"""Which of what the journal tells was done on this node, where several share it: a turn by who has claimed it last.

Each node hears all of it. What each would say of it elsewhere (to a collector of traces, in figures) one of them is to
say.
"""

MOST_ELSEWHERE = 10_000  # sessions and replies; of the oldest it is forgotten that they are not ours


class OwnTurns:
    """`node` is the name of this one; without it all is ours."""

    def __init__(self, node: str = "") -> None:
        self._node = node
        self._others: dict[str, None] = {}

    def has(self, chain: str, kind: str, by: str = "", reply_id: str = "") -> bool:
        """Tell if a record of this chain is of our work. `by` has claimed the turn, and `reply_id` is what is sent."""
        if not self._node:
            return True
        if kind == "claim":
            self._note(chain, is_ours=by in ("", self._node))
        is_ours = (reply_id if kind in ("sent", "failed") else chain) not in self._others
        if kind == "out":
            self._note(reply_id, is_ours=is_ours)
        return is_ours

    def _note(self, what: str, *, is_ours: bool) -> None:
        self._others.pop(what, None)
        if not is_ours:
            self._others[what] = None
            if len(self._others) > MOST_ELSEWHERE:
                del self._others[next(iter(self._others))]
