"""The MCP server: seven tools, and the days and sessions as resources, over stdin and stdout.

`handshake` answers the client before anything heavy is imported, `tools` says what each tool takes and does,
`server` connects them to the official SDK, `clients` writes the entry into a client's configuration. All work
is done by `memkit.Memory`, which asks the background service.
"""
