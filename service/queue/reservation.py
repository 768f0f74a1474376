"""The room that a queue keeps free for an admitted call."""

from dataclasses import dataclass

from service.options import Priority


@dataclass(slots=True, eq=False)
class Reservation:
    """Texts of a call that has been let in, and whose segments come portion by portion.

    Attributes:
        client: whose call it is.
        priority: of the call.
        text_bytes: of what has not come, in UTF-8.
        slots: that each segment will take.
    """

    client: str
    priority: Priority
    text_bytes: int
    slots: int = 1
