"""The dispatcher: between the networks' messages and the lanes that answer them."""
