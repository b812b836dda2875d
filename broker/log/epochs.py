"""Which leader epoch wrote which offsets (KIP-101, KIP-320)."""

from __future__ import annotations

from bisect import bisect_right

UNDEFINED = -1


class LeaderEpochs:
    """The first offset of each epoch, oldest first. There is always a newest epoch once `begin` was called."""

    def __init__(self) -> None:
        self._epochs: list[int] = []
        self._starts: list[int] = []

    @property
    def latest(self) -> int:
        return self._epochs[-1] if self._epochs else UNDEFINED

    def begin(self, epoch: int, offset: int) -> None:
        """A leader of this epoch writes from `offset` on. Epochs that wrote nothing are forgotten."""
        if epoch <= self.latest:
            return
        while self._starts and self._starts[-1] >= offset:
            self._starts.pop()
            self._epochs.pop()
        self._epochs.append(epoch)
        self._starts.append(offset)

    def at(self, offset: int) -> int:
        """The epoch in which the record at this offset was written, or will be."""
        index = bisect_right(self._starts, offset) - 1
        return self._epochs[index] if index >= 0 else UNDEFINED

    def end_of(self, epoch: int, log_end: int) -> tuple[int, int]:
        """The largest epoch that is not above the asked one, and the offset behind its last record.

        (-1, -1) for an epoch from before the log's memory or from the future, as Kafka answers.
        """
        if epoch == UNDEFINED or not self._epochs or epoch > self.latest:
            return UNDEFINED, UNDEFINED
        if epoch == self.latest:
            return epoch, log_end
        index = bisect_right(self._epochs, epoch) - 1
        if index < 0:
            # Older than anything known: the first known epoch begins where that one must have ended.
            return epoch, self._starts[0]
        return self._epochs[index], self._starts[index + 1]

    def forget_before(self, log_start: int) -> None:
        """Records below the start are gone. The epoch of the start itself stays."""
        index = max(bisect_right(self._starts, log_start) - 1, 0)
        del self._epochs[:index], self._starts[:index]
        if self._starts:
            self._starts[0] = max(self._starts[0], log_start)
