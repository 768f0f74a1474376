"""What a model is asked before the work on texts begins."""

import pytest

from dragoman.errors import QueueFullError
from service.calls.admission import precheck
from service.options import RequestOptions, XmlTags
from service.queue.intake import Intake
from service.queue.mailbox import Mailbox
from service.telemetry.metrics import Metrics


class Asked(Intake):
    """An intake that remembers for how many bytes it was asked."""

    def __init__(self) -> None:
        super().__init__(Mailbox(100), Metrics().of("en-de"), limit_bytes=0, coalesce=False)
        self.sizes: list[int] = []

    def precheck(self, options: RequestOptions, text_bytes: int) -> None:
        self.sizes.append(text_bytes)
        super().precheck(options, text_bytes)


PLAIN, HTML, XML = RequestOptions(), RequestOptions(html=True), RequestOptions(xml=XmlTags())


def test_a_plain_text_is_asked_for_by_its_bytes() -> None:
    asked = Asked()
    precheck(asked, PLAIN, ["aé", "你"])
    assert asked.sizes == [6]


@pytest.mark.parametrize("options", [HTML, XML])
def test_of_what_has_tags_nobody_knows_yet_how_much_is_text(options: RequestOptions) -> None:
    asked = Asked()
    precheck(asked, options, ["<p>aé</p>"])
    assert asked.sizes == [0]


@pytest.mark.parametrize("options", [PLAIN, HTML])
def test_what_a_full_model_refuses_is_refused(options: RequestOptions) -> None:
    class Full(Asked):
        def precheck(self, options: RequestOptions, text_bytes: int) -> None:
            raise QueueFullError("full")

    with pytest.raises(QueueFullError):
        precheck(Full(), options, ["a"])
