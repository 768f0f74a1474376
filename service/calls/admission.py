"""Whether texts may come in, by their size: asked before any work."""

from collections.abc import Iterable

from service.options import RequestOptions
from service.queue.intake import Intake


def precheck(intake: Intake, options: RequestOptions, contents: Iterable[str]) -> None:
    """Refuse texts that have no prospects, before anything is set up for their call: refusals are to be cheap.

    Args:
        intake: of the model.
        options: of the call.
        contents: its texts.

    Raises:
        QueueFullError: they would wait beyond the limits (OverloadedError: beyond the delay promised).
        DeadlineUnreachableError: they would be late.
        DragomanError: the model takes no segments any more.
    """
    # Of HTML and XML, how much is text shows later.
    intake.precheck(options, 0 if options.has_tags else sum([len(text.encode()) for text in contents]))
