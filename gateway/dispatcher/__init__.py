"""The dispatcher: it takes the networks' messages, and does the work of the lanes that answer them."""
