"""The MCP server: seven tools, and the days and sessions as resources, over stdin and stdout.

`handshake` answers the client before anything heavy is imported. `tools` has the arguments and the call of
each tool, `server` connects them to the official SDK, and `clients` writes the entry into a client's
configuration. All work is done by the memory, which asks the background service.
"""
