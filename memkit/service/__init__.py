"""The service that is started on demand, and how one speaks with it.

`frames`, `address` and `client` are what hooks and commands import; `listener` is the other end.
"""
