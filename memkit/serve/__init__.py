"""The HTTP API: `memkit serve`.

The routes are in `memories`, `timeline`, `topics`, and `overview`; `app` combines them.
Each is thin: it validates the request (`shapes`), calls `memkit.Memory` in a thread (`limits`), and returns
JSON (`answers`). `guard` rejects foreign hosts and origins first. `keys` stores API keys and their roles, and
`auth` checks them.
`browser` serves the files of the page in `page/`, and gives it a key for the token of its `link`.
`problems` turns errors into responses. `server` checks the packages, and `running` runs uvicorn until a
signal.
"""
