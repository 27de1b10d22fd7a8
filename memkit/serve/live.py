"""Tells pages what changes in the memory, as server-sent events."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING
from weakref import WeakSet

import anyio.to_thread

from memkit.interface import InterfaceMemory as Memory
from memkit.serve.answers import BusyError
from memkit.service.watcher import Watcher
from memkit.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from memkit.timeline.tree import Timeline

logger = logging.getLogger(__name__)

MOST_LISTENERS = 16
MOST_WAITING = 100
"""The events that wait for a listener. One that is slower is sent away."""

PAUSE_SECONDS = 20.0
"""The time without an event after which a comment keeps the connection alive."""

BEGIN, COMMENT = b": listening\n\n", b": nothing new\n\n"

_Queue = asyncio.Queue[bytes | None]  # None ends a listener


class Live:
    """Watches the memory while someone listens."""

    def __init__(self, open_memory: Callable[[], Memory]) -> None:
        self._open = open_memory
        # Weak: a client that leaves before its first event ends nothing, and its place is free again.
        self._queues: WeakSet[_Queue] = WeakSet()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._has_ended = False
        self._watcher: Watcher | None = None
        self._seen: Timeline | None = None
        self._starting = threading.Lock()

    def join(self) -> _Queue:
        """Return the queue of a new listener. Raise `BusyError`."""
        if len(self._queues) >= MOST_LISTENERS or self._has_ended:
            raise BusyError(f"{MOST_LISTENERS} pages listen already; close one")
        queue: _Queue = asyncio.Queue(MOST_WAITING)
        self._loop = asyncio.get_running_loop()
        self._queues.add(queue)
        return queue

    async def events(self, queue: _Queue, may_go_on: Callable[[], bool]) -> AsyncIterator[bytes]:
        """Yield the events of a listener until the server ends, or it may no longer listen."""
        try:
            await anyio.to_thread.run_sync(self._start)
            yield BEGIN
            while may_go_on():
                try:
                    event = await asyncio.wait_for(queue.get(), PAUSE_SECONDS)
                except asyncio.TimeoutError:
                    event = COMMENT
                if event is None or not may_go_on():
                    return
                yield event
        finally:
            self._queues.discard(queue)
            if not self._queues:
                threading.Thread(target=self._stop, name="live", daemon=True).start()

    def end(self) -> None:
        """End all listeners. Any thread, and a signal handler, may call it."""
        self._has_ended = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._tell, None)

    def _start(self) -> None:
        with self._starting:
            if self._watcher is not None:
                return
            memory = self._open()
            watcher = Watcher(self._changed)
            watcher.watch_memory(memory.project, memory.home, memory.settings)  # first: no change is missed
            self._seen, _, _ = memory.changes()
            self._watcher = watcher

    def _stop(self) -> None:
        with self._starting:
            if not self._queues and self._watcher is not None:
                self._watcher.close()
                self._watcher = self._seen = None

    def _changed(self, root: str) -> None:
        """Send what changed to all listeners. The watcher's thread calls this."""
        try:
            self._seen, days, entries = self._open().changes(self._seen)
        except Exception as error:  # noqa: BLE001 - the next change tells it, too
            logger.warning("pages do not hear of a change: %s", one_line(str(error)))
            return
        data = json.dumps({"days": days, "entries": entries}, separators=(",", ":"))
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._tell, f"event: changed\ndata: {data}\n\n".encode())

    def _tell(self, event: bytes | None) -> None:
        for queue in list(self._queues):
            try:
                queue.put_nowait(event)
            except asyncio.QueueFull:
                self._queues.discard(queue)
                queue.get_nowait()
                queue.put_nowait(None)
