"""Decide which records belong to this node's work if several nodes share a journal: the last claim of a turn decides.

Every node receives all records. Only one of them should report each record elsewhere (to a trace collector, or in
metrics).
"""

import msgspec

MOST_ELSEWHERE = 10_000  # sessions and replies of other nodes that are remembered


class OwnTurns(msgspec.Struct, eq=False):
    """The turns of the node with this name; without a name all turns are ours."""

    _node: str = ""
    _others: dict[str, None] = {}

    def has(self, chain: str, kind: str, by: str = "", reply_id: str = "") -> bool:
        """Return True if a record of this chain is our work.

        `by` has claimed the turn, and `reply_id` is the reply sent.
        """
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
