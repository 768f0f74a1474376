"""What must hold of any text and of any bytes in the parts that need no server; hypothesis and atheris ask them."""

from functools import cache

from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2

from dragoman.bundle import Manifest
from dragoman.errors import DragomanError, to_status
from dragoman.tokenizer import Tokenizer
from dragoman.v1 import translation_pb2 as pb
from plugins.terms.glossaries import Glossaries
from service.decode import FinishReason
from service.handlers import validation
from service.handlers.source_language import source_language_of
from service.options import RequestOptions, XmlTags
from service.queue.intake import Intake
from service.queue.mailbox import Mailbox
from service.registry.catalog import Catalog, Pipeline, ServedModel
from service.settings import Settings
from service.telemetry.metrics import Metrics
from service.text.translator import Translator
from tests.server_process import BUNDLE

# gRPC peers begin to refuse trailing metadata at 8 KiB; base64 makes 4 bytes of 3.
_STATUS_BYTES = 6_144
_XML_TAGS = XmlTags(splitting=frozenset(["p"]), kept=frozenset(["x"]))


@cache
def _model() -> ServedModel:
    manifest = Manifest.read(BUNDLE)
    mailbox = Mailbox(1_000_000)
    intake = Intake(mailbox, Metrics().of(manifest.name), limit_bytes=0, coalesce=False)
    return ServedModel(manifest, 32, Pipeline(Translator(manifest, Tokenizer.open(BUNDLE)), mailbox, intake))


def check_text(text: str) -> None:
    """A text becomes segments that the model takes, and what is handed out of them bit by bit is the whole.

    Raises:
        AssertionError: it is not so.
    """
    for options in (RequestOptions(), RequestOptions(has_tags=True), RequestOptions(has_tags=True, xml=_XML_TAGS)):
        _check_text(text, options)


def _check_text(text: str, options: RequestOptions) -> None:
    manifest = _model().manifest
    document = _model().in_memory().translator.prepare(text, options)
    if not document.segments and not options.has_tags:
        assert document.result().text == text
    for segment in document.segments:
        assert 1 < len(segment.decode.source_ids) <= manifest.max_source_tokens
        assert segment.decode.source_ids[-1] == manifest.eos_id
        segment.decode.target_ids.extend(segment.decode.source_ids[:-1])
        segment.decode.finish(FinishReason.EOS, 0.0)
        segment.finished = True
    handed_out = ""
    while delta := document.grow():
        handed_out += delta
    assert handed_out == document.result().text


def check_message(message: bytes) -> None:
    """Bytes are no request, or a request that is valid, or one that gets an error that fits a status.

    Raises:
        AssertionError: it is not so.
    """
    try:
        request = pb.TranslateTextRequest.FromString(message)
    except DecodeError:
        return
    try:
        catalog = Catalog([_model()])
        source = source_language_of(request, catalog).code
        validation.translation_route(request, source, catalog, Settings(), Glossaries())
    except DragomanError as error:
        status = to_status(error)
        assert len(status.SerializeToString()) < _STATUS_BYTES
        assert sum(detail.Is(error_details_pb2.ErrorInfo.DESCRIPTOR) for detail in status.details) == 1
