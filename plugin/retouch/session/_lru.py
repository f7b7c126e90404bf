"""A small cache for what takes a while to make and is asked for again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")


class Lru(Generic[Key, Item]):
    """Keeps the items used last. Several threads may use one."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._lock = threading.Lock()
        self._items: OrderedDict[Key, Item] = OrderedDict()

    def get(self, key: Key, make: Callable[[], Item]) -> Item:
        """The item under that key, made if it is not kept; two threads may make it at once, and the last stays."""
        with self._lock:
            if key in self._items:
                self._items.move_to_end(key)
                return self._items[key]
        item = make()
        with self._lock:
            self._items[key] = item
            while len(self._items) > self._capacity:
                self._items.popitem(last=False)
        return item
