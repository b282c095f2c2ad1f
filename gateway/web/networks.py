"""`POST /networks/NAME`: calls of chat networks. The caller is checked before any byte of the body is read.

An unknown network, one that is not running and a wrong secret get the same answer.
"""

import logging
from http import HTTPStatus

import msgspec

from gateway.adapters.shared.network_routes import PATH, NetworkRoutes
from gateway.errors import GatewayError
from gateway.web.host_rules import HostRules
from gateway.web.http_request import HttpRequest, HttpResponse
from gateway.web.key_check import KeyLimiter
from gateway.web.request_body import WebRefusal
from gateway.web.webhooks.receiver import COME_AGAIN, BodyPlaces

log = logging.getLogger(__name__)

UNBELIEVED = "no network receives calls here, or this was not signed with its secret"


class NetworkReceiver(msgspec.Struct, eq=False):
    """The receiver that passes calls of networks to their adapters."""

    _routes: NetworkRoutes
    _rules: HostRules
    _limiter: KeyLimiter = msgspec.field(default_factory=KeyLimiter)
    _places: BodyPlaces = msgspec.field(default_factory=BodyPlaces)

    async def answer(self, request: HttpRequest, peer: str) -> HttpResponse:
        """Answer a call; raises WebRefusal."""
        if request.method != "POST":
            raise WebRefusal(HTTPStatus.METHOD_NOT_ALLOWED, "networks call by POST", Allow="POST")
        if request.query:
            raise WebRefusal(HTTPStatus.BAD_REQUEST, "the address carries no values: put secrets into headers")
        network = request.path.removeprefix(PATH)
        route = self._routes.find(request.path)
        if route is None:
            raise self._refuse(network, "it is not at work, or is not called here", request, peer)
        if why_not := route.why_not_heard(request.headers):
            raise self._refuse(network, why_not, request, peer)
        async with self._places.hold(self._rules.find_peer(request.headers, peer), request.body):
            body = await request.body.read(route.largest)
        if why_not := route.why_not_believed(request.headers, body):
            raise self._refuse(network, why_not, request, peer)
        is_plain = request.headers.get("content-encoding", "identity") == "identity"
        if request.content_type not in route.content_types or not is_plain:
            raise WebRefusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"this takes {' or '.join(route.content_types)}")
        try:
            answer = await route.take(request.headers, body)
        except (GatewayError, OSError) as error:
            log.warning("%s: what it sent is left to it: %s", network, error)
            what = "the journal takes nothing now; come again"
            raise WebRefusal(HTTPStatus.SERVICE_UNAVAILABLE, what, Retry_After=COME_AGAIN) from None
        return HttpResponse(answer.status, answer.body.encode(), answer.content_type)

    def _refuse(self, network: str, why: str, request: HttpRequest, peer: str) -> WebRefusal:
        """Make the refusal of an untrusted call: the reason goes to the log, and the caller does not see it."""
        log.info("networks: a call for %.20r was refused: %s", network, why)
        unbelieved = WebRefusal(HTTPStatus.UNAUTHORIZED, UNBELIEVED)
        return self._limiter.refuse(self._rules.find_peer(request.headers, peer), "calls", unbelieved)
