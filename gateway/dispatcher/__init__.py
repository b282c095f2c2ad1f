"""The dispatcher: between the networks' messages and the lanes that answer them."""

from gateway.dispatcher.deliveries import Deliveries
from gateway.dispatcher.dispatcher import Dispatcher
from gateway.dispatcher.grants import Grants
from gateway.dispatcher.house import About, House, Network, Reports

__all__ = ["About", "Deliveries", "Dispatcher", "Grants", "House", "Network", "Reports"]
