"""The conversation: `gateway.messages.transcript`, under the name that programs import it by."""

from gateway.messages.transcript import Entry as Entry
