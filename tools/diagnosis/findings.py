"""The result of one check."""

import dataclasses

__all__ = ["BROKEN", "MISSING", "OK", "Finding"]

OK, MISSING, BROKEN = "ok", "missing", "broken"


@dataclasses.dataclass(frozen=True)
class Finding:
    """One line of the report.

    Attributes:
        state: str. `OK`; `MISSING`, for what the package works without; or `BROKEN`.
        what: str. The thing.
        detail: str. Its version or size; what to do, if it is not there.
    """

    state: str
    what: str
    detail: str

    def __str__(self):
        return f"{self.state:8}{self.what}: {self.detail}"
