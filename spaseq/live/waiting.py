"""What keeps a sink from writing while it tries again: for the log, at once, and for `/readyz`."""

from __future__ import annotations

from collections.abc import Callable


class Waiting:
    """The present trouble of one sink. Any thread may call it.

    Args:
        shown: The URL of the sink, without secrets.
    """

    def __init__(self, shown: str):
        self._shown = shown
        self.log: Callable[[str], None] = lambda text: None
        """Reports when trouble begins and ends."""
        self.problem: str | None = None
        """What keeps the sink from writing; None: nothing."""

    def begin(self, said: object) -> None:
        """An attempt has failed, and another one follows."""
        is_new, self.problem = self.problem is None, " ".join(str(said).split()) or "no answer"
        if is_new:
            self.log(f"{self._shown}: cannot be written ({self.problem}); trying again")

    def end(self) -> None:
        """An attempt has succeeded."""
        if self.problem is not None:
            self.problem = None
            self.log(f"{self._shown}: written again")
