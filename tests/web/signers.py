"""The senders of webhooks, by their own libraries if they have one; GitHub and GitLab by their documents."""

import hashlib
import hmac
import json
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from slack_sdk.signature import SignatureVerifier
from standardwebhooks.webhooks import Webhook as StandardSigner
from stripe import WebhookSignature

JSON = "application/json"
GITHUB_SECRET = "It's a Secret to Everybody"
STANDARD_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
STRIPE_SECRET = "whsec_of-stripe-stands-as-it-is"
SLACK_SECRET = "8f742231b10e8888abcd99yyyzzz85a5"
TOKEN = "a-token-that-is-long-enough"
SECRETS = {
    "github": GITHUB_SECRET,
    "stripe": STRIPE_SECRET,
    "slack": SLACK_SECRET,
    "standard": STANDARD_SECRET,
    "token": TOKEN,
}

Sign = Callable[..., dict[str, str]]


def sign_github(
    body: bytes, *, secret: str = GITHUB_SECRET, name: str = "one", event: str = "issues"
) -> dict[str, str]:
    made = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return {
        "Content-Type": JSON,
        "X-GitHub-Event": "issues",
        "X-GitHub-Delivery": name,
        "X-Hub-Signature-256": f"sha256={made}",
    }


def sign_stripe(body: bytes, *, secret: str = STRIPE_SECRET, at: float = 0, name: str = "") -> dict[str, str]:
    stamp = int(at or time.time())
    made = WebhookSignature._compute_signature(f"{stamp}.{body.decode()}", secret)
    return {"Content-Type": JSON, "Stripe-Signature": f"t={stamp},v1={made},v0=6ffbb59b2300aae63f272406069a9788598b"}


def sign_slack(body: bytes, *, secret: str = SLACK_SECRET, at: float = 0, name: str = "") -> dict[str, str]:
    stamp = str(int(at or time.time()))
    made = SignatureVerifier(secret).generate_signature(timestamp=stamp, body=body)
    assert made
    return {"Content-Type": JSON, "X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": made}


def sign_standard(
    body: bytes, *, secret: str = STANDARD_SECRET, at: float = 0, name: str = "msg_one"
) -> dict[str, str]:
    when = datetime.fromtimestamp(int(at or time.time()), UTC)
    made = StandardSigner(secret).sign(name, when, body.decode())
    stamp = str(int(when.timestamp()))
    return {"Content-Type": JSON, "webhook-id": name, "webhook-timestamp": stamp, "webhook-signature": made}


def sign_token(_body: bytes, *, secret: str = TOKEN, name: str = "") -> dict[str, str]:
    key = {"Idempotency-Key": name} if name else {}
    return {"Content-Type": JSON, "X-Gitlab-Event": "Push Hook", "X-Gitlab-Token": secret, **key}


SIGN: Mapping[str, Sign] = {
    "github": sign_github,
    "stripe": sign_stripe,
    "slack": sign_slack,
    "standard": sign_standard,
    "token": sign_token,
}


def body_of(name: str, **more: object) -> bytes:
    """Something that any of them could send, and that is theirs by this id."""
    return json.dumps({"id": name, "event_id": name, "type": "thing.done", **more}).encode()
