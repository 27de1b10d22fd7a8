"""The background process of a memory home. Commands and hooks start it on demand and ask it through `ipc`."""
