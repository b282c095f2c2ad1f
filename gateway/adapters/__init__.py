"""The chat networks: one row each, with the folder of its code; and the adapter kit.

The rows are text, and a folder's modules are loaded on demand: `settings` (the options of the network, and facts that
need no library), `setup` (the questions of the wizard), `check` (are the tokens good?) and `adapter` (the work).
`gateway.adapters.shared` has the parts that all of them share.

Adapters by other authors are folders of the same shape, found by `adapters.dirs` or an entry point. They may import the
names in `KIT`, from here: see docs/adapters.md. A name is loaded on first use, so that settings need no journal.
"""

from typing import TYPE_CHECKING, Any

from gateway.adapters.shared.kit import KIT, load_name

if TYPE_CHECKING:
    from gateway.adapters.shared.adapter import Adapter as Adapter
    from gateway.adapters.shared.adapter import AdapterContext as AdapterContext
    from gateway.adapters.shared.adapter import Presence as Presence
    from gateway.adapters.shared.adapter_host import AdapterHost as AdapterHost
    from gateway.adapters.shared.buttons import decode_button as decode_button
    from gateway.adapters.shared.buttons import encode_button as encode_button
    from gateway.adapters.shared.files import LoadedFile as LoadedFile
    from gateway.adapters.shared.files import OutboundFile as OutboundFile
    from gateway.adapters.shared.files import fetch_file as fetch_file
    from gateway.adapters.shared.folder import PlatformReport as PlatformReport
    from gateway.adapters.shared.folder import PlatformSetup as PlatformSetup
    from gateway.adapters.shared.folder import SetupQuestion as SetupQuestion
    from gateway.adapters.shared.folder import make_access_questions as make_access_questions
    from gateway.adapters.shared.incoming import IncomingMessage as IncomingMessage
    from gateway.adapters.shared.incoming import add_context as add_context
    from gateway.adapters.shared.incoming import describe_reply as describe_reply
    from gateway.adapters.shared.incoming import make_reaction as make_reaction
    from gateway.adapters.shared.incoming import to_plain_name as to_plain_name
    from gateway.adapters.shared.markdown_split import split_markdown as split_markdown
    from gateway.adapters.shared.network_errors import NetworkErrors as NetworkErrors
    from gateway.adapters.shared.network_routes import NetworkRoute as NetworkRoute
    from gateway.adapters.shared.network_routes import RouteAnswer as RouteAnswer
    from gateway.adapters.shared.send_rate import Rate as Rate
    from gateway.adapters.shared.send_rate import RateLimiter as RateLimiter
    from gateway.adapters.shared.transport import NetworkTransport as NetworkTransport
    from gateway.config.fields import Secret as Secret
    from gateway.config.fields import describe as describe
    from gateway.config.platform_settings import PlatformSettings as PlatformSettings
    from gateway.config.platform_settings import PlatformSpec as PlatformSpec
    from gateway.errors import AdapterError as AdapterError
    from gateway.logs.redaction import TokenShape as TokenShape
    from gateway.messages.message import Address as Address
    from gateway.messages.message import Attachment as Attachment
    from gateway.messages.message import Button as Button
    from gateway.messages.message import LiteralText as LiteralText
    from gateway.messages.message import Message as Message
    from gateway.messages.message import Receipt as Receipt
    from gateway.messages.message import Reply as Reply
    from gateway.messages.message import kind_of as kind_of
    from gateway.messages.parts import Contact as Contact
    from gateway.messages.parts import Location as Location
    from gateway.messages.parts import MessagePart as MessagePart
    from gateway.messages.parts import Poll as Poll
    from gateway.messages.parts import Sticker as Sticker
    from gateway.messages.parts import describe_parts as describe_parts
    from gateway.messages.parts import make_contact as make_contact
    from gateway.messages.parts import make_location as make_location
    from gateway.messages.parts import make_poll as make_poll
    from gateway.messages.parts import make_sticker as make_sticker
    from gateway.outbox.interface import DoubtPolicy as DoubtPolicy
    from gateway.outbox.interface import LiveCapability as LiveCapability
    from gateway.outbox.interface import Transport as Transport

ADAPTERS = {
    "telegram": "gateway.adapters.telegram",
    "discord": "gateway.adapters.discord",
    "slack": "gateway.adapters.slack",
}
__all__ = [name for names in KIT.values() for name in names]


def __getattr__(name: str) -> Any:
    return load_name(__name__, name)
