"""Words of what people say, and answers spoken: a program of this machine, or an endpoint, does either."""
