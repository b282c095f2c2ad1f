"""The dispatcher: between the networks' messages and the lanes that answer them."""

from gateway.dispatcher.context import DispatcherContext, GatewayFacts, GatewayReports, PlatformInfo
from gateway.dispatcher.dispatcher import Dispatcher
from gateway.dispatcher.hook_requests import HookRequests
from gateway.dispatcher.ingress import CompleteMessage
from gateway.dispatcher.reply_hooks import ReplyHooks

__all__ = [
    "CompleteMessage",
    "Dispatcher",
    "DispatcherContext",
    "GatewayFacts",
    "GatewayReports",
    "HookRequests",
    "PlatformInfo",
    "ReplyHooks",
]
