"""The HTTP API: `memkit serve`.

`app` puts it together: the routes of `memories`, `timeline`, `searches`, `topics`, and `jobs`. Each is thin.
It checks what a request says (`shapes`), asks `memkit.Memory` in a thread (`asking`), and returns JSON
(`answers`). `guard` refuses foreign hosts and origins before anything else, `keys` says who may do what, and
`problems` tells what went wrong. `server` checks the packages, and `running` runs it until a signal comes.
"""
