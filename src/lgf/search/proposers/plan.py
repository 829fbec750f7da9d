"""A plan of proposals in batches: each batch is made when the results of the one before are known."""

from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Plan(Generic[T]):
    """Hands out the batches of an iterator piece by piece, and waits for their results before it goes on."""

    def __init__(self, batches: Iterator[list[T]]):
        self._batches = batches
        self._waiting: list[T] = []
        self._sent: list[T] = []

    def next(self, n: int) -> list[T]:
        """Up to n of the present batch; of the next one, if results are known."""
        while not self._waiting:
            if self._sent:
                return []
            batch = next(self._batches, None)
            if batch is None:
                return []
            self._waiting = batch
        now, self._waiting = self._waiting[:n], self._waiting[n:]
        self._sent += now
        return now

    def answered(self) -> list[T]:
        """What was handed out since the last call: its results are known now."""
        sent, self._sent = self._sent, []
        return sent
