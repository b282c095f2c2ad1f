"""Handles what is shouted; an object that can be called."""

class Shouter:
    def __init__(self):
        self.count = 0

    def __call__(self, event, ctx):
        self.count += 1
        answer = None
        if ctx["command"] == "title" and ctx["args"].isupper():
            answer = {"message": f"no shouting ({self.count > 0})"}
            answer["decision"] = "handled"
        return answer


handle = Shouter()
