"""The problem of a sink that retries, for the log (immediately) and for `/readyz`."""

from __future__ import annotations

from collections.abc import Callable


class Waiting:
    """The current problem of one sink. Any thread may call it.

    Args:
        shown: The URL of the sink, without secrets.
    """

    def __init__(self, shown: str):
        self._shown = shown
        self.log: Callable[[str], None] = lambda text: None
        """Reports the beginning and the end of a problem."""
        self.problem: str | None = None
        """The problem that prevents the sink from writing, or None."""

    def begin(self, said: object) -> None:
        """Record that an attempt has failed, and that another one follows."""
        is_new, self.problem = self.problem is None, " ".join(str(said).split()) or "no answer"
        if is_new:
            self.log(f"{self._shown}: cannot be written ({self.problem}); trying again")

    def end(self) -> None:
        """Record that an attempt has succeeded."""
        if self.problem is not None:
            self.problem = None
            self.log(f"{self._shown}: written again")
