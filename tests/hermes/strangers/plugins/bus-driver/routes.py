"""Where the bus stops."""

ROUTES = {"1": "market"}
