"""What is forbidden."""

from .texts import REFUSAL


class Policy:
    forbidden = frozenset({"night"})

    def judge(self, context):
        if context.get("args") in self.forbidden:
            return dict(decision="deny", message=REFUSAL)
