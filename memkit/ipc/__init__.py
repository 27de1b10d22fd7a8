"""Reach the service and the worker: spool, address, frames, client, start, stop.

Standard library only, Python 3.9 syntax: hooks import this package.
"""
