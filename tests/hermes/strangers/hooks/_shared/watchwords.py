"""What the hooks of one author share."""


def make_handler(word):
    def inner(event_type, context):
        return {"decision": "deny", "message": f"{word} says no"}

    return inner
