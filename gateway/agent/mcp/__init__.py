"""Tools of servers that speak MCP: programs that we start, and addresses."""
