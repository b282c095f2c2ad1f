"""POSTs the event as JSON. An answer of 400 or more is a failure, so that the delivery is tried again."""

import json
import os
import urllib.request


def handle(event_type, context):
    body = json.dumps({"event": event_type, **context}).encode()
    request = urllib.request.Request(
        os.environ["SESSION_WEBHOOK_URL"],
        data=body,
        headers={"Content-Type": "application/json", "Idempotency-Key": str(context["id"])},
    )
    with urllib.request.urlopen(request, timeout=20):
        pass
