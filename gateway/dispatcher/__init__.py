"""The dispatcher: between the networks' messages and the lanes that answer them."""

from gateway.dispatcher.audio_messages import AudioMessages
from gateway.dispatcher.chat_commands import BUILT_IN, open_page_by_button, suggest_names
from gateway.dispatcher.context import DispatcherContext, GatewayFacts, GatewayReports, PlatformInfo
from gateway.dispatcher.dispatcher import Dispatcher
from gateway.dispatcher.hook_requests import HookRequests
from gateway.dispatcher.ingress import CompleteMessage
from gateway.dispatcher.message_events import ReplyHooks

__all__ = [
    "BUILT_IN",
    "AudioMessages",
    "CompleteMessage",
    "Dispatcher",
    "DispatcherContext",
    "GatewayFacts",
    "GatewayReports",
    "HookRequests",
    "PlatformInfo",
    "ReplyHooks",
    "open_page_by_button",
    "suggest_names",
]
