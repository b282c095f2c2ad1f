"""The sender of a webhook: signatures of the senders' own libraries are believed, and nothing else is."""

import time

import pytest

from gateway.config.webhooks import WebhookSigner
from gateway.web.webhooks.senders import has_token, is_in_time, make_key, sign_body
from tests.web.signers import GITHUB_SECRET, SECRETS, SIGN, STANDARD_SECRET, body_of

SIGNED: tuple[WebhookSigner, ...] = ("github", "stripe", "slack", "standard")
TIMED: tuple[WebhookSigner, ...] = ("stripe", "slack", "standard")
BODY = '{"emoji": "\\u2713 ✓",  "id":"one"}'.encode()


def why_not(signer: WebhookSigner, headers: dict[str, str], body: bytes = BODY) -> str:
    named = {name.lower(): value for name, value in headers.items()}
    return sign_body(signer, make_key(signer, SECRETS[signer]), named, body)[1]


@pytest.mark.row("T13")
@pytest.mark.parametrize("signer", SIGNED)
def test_what_their_own_library_signs_is_believed_byte_for_byte(signer: WebhookSigner) -> None:
    headers = SIGN[signer](BODY)
    assert why_not(signer, headers) == ""
    assert why_not(signer, headers, BODY.replace(b"  ", b" ")), "the same JSON, written otherwise"
    assert why_not(signer, headers, BODY + b"\n")
    other = STANDARD_SECRET[:-4] + "AAAA" if signer == "standard" else "another secret"
    assert why_not(signer, SIGN[signer](BODY, secret=other))


@pytest.mark.row("T13")
@pytest.mark.parametrize("signer", SIGNED)
@pytest.mark.parametrize("others", [*SIGNED, "token"])
def test_nobody_is_believed_for_the_signature_of_another_kind(signer: WebhookSigner, others: str) -> None:
    headers = SIGN[others](BODY, secret=SECRETS[others])
    assert bool(why_not(signer, headers)) == (others != signer)
    bare = {"Content-Type": "application/json", "Authorization": f"Bearer {SECRETS[signer]}"}
    assert why_not(signer, bare) == "it is not signed"


def test_the_vector_that_github_documents() -> None:
    headers = {"X-Hub-Signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"}
    assert SECRETS["github"] == GITHUB_SECRET
    assert why_not("github", headers, b"Hello, World!") == ""
    assert why_not("github", {"X-Hub-Signature-256": headers["X-Hub-Signature-256"].removeprefix("sha256=")})


@pytest.mark.row("T13")
@pytest.mark.parametrize("signer", TIMED)
def test_what_was_signed_five_minutes_ago_or_is_to_be_is_too_late_or_too_early(signer: WebhookSigner) -> None:
    now = time.time()
    for seconds, is_right in ((-290, True), (290, True), (-310, False), (310, False)):
        headers = {name.lower(): value for name, value in SIGN[signer](BODY, at=now + seconds).items()}
        assert is_in_time(signer, headers, now) is is_right
    assert not is_in_time(signer, {}, now)


@pytest.mark.row("T13")
def test_the_time_is_part_of_what_is_signed() -> None:
    old, now = time.time() - 4000, str(int(time.time()))
    stamp = str(int(old))
    for signer in TIMED:
        headers = {name: value.replace(stamp, now) for name, value in SIGN[signer](BODY, at=old).items()}
        assert why_not(signer, headers) == "its signature is not made of this body with this secret"


def test_one_signature_of_several_is_enough_while_a_secret_is_changed() -> None:
    stripe = SIGN["stripe"](BODY)
    stripe["Stripe-Signature"] = stripe["Stripe-Signature"].replace(",v1=", f",v1={'0' * 64},v1=")
    assert why_not("stripe", stripe) == ""
    standard = SIGN["standard"](BODY)
    standard["webhook-signature"] = f"v1a,abcd v1,{'A' * 43}= {standard['webhook-signature']}"
    assert why_not("standard", standard) == ""
    stripe["Stripe-Signature"] += f",t={int(time.time())}"
    assert why_not("stripe", stripe), "two times: which one is signed?"


@pytest.mark.row("T8")
def test_the_token_may_stand_in_each_of_its_headers_and_is_compared_whole() -> None:
    key = make_key("token", SECRETS["token"])
    for headers in (
        {"authorization": f"Bearer {SECRETS['token']}"},
        {"authorization": f"bearer  {SECRETS['token']}"},
        {"x-gitlab-token": SECRETS["token"]},
        {"x-webhook-token": SECRETS["token"]},
    ):
        assert has_token(headers, key)
    for wrong in ("", SECRETS["token"][:-1], f"{SECRETS['token']}x", SECRETS["token"].upper(), "\xff"):
        assert not has_token({"authorization": f"Bearer {wrong}"}, key)
    assert not has_token({"authorization": f"Basic {SECRETS['token']}"}, key)


@pytest.mark.row("T12")
def test_a_secret_that_is_none_opens_nothing() -> None:
    wrong: tuple[tuple[WebhookSigner, str], ...] = (("github", ""), ("token", " \t"), ("standard", "whsec_no base64"))
    for signer, secret in (*wrong, ("standard", "short")):
        with pytest.raises(ValueError, match=r"blank|base64|shorter"):
            make_key(signer, secret)


@pytest.mark.parametrize("signer", SIGNED)
@pytest.mark.parametrize(
    "odd", ["", "=", "\xe9", "v1,\xe9", "v0=\xff", "sha256=\xb2", "t=\xb9,v1=\xb2", "v1,====", "t=1"]
)
def test_what_is_no_signature_at_all_is_none(signer: WebhookSigner, odd: str) -> None:
    for name in SIGN[signer](BODY):
        headers = {key.lower(): value for key, value in (SIGN[signer](BODY) | {name: odd}).items()}
        is_unsigned = name in ("Content-Type", "X-GitHub-Event", "X-GitHub-Delivery")
        assert bool(why_not(signer, headers)) or is_unsigned
        assert is_in_time(signer, headers, time.time()) in (True, False)


def test_what_is_signed_is_what_came() -> None:
    assert why_not("github", SIGN["github"](body_of("é")), body_of("é")) == ""
