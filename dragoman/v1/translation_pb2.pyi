from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Priority(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PRIORITY_UNSPECIFIED: _ClassVar[Priority]
    PRIORITY_INTERACTIVE: _ClassVar[Priority]
    PRIORITY_BULK: _ClassVar[Priority]

class FinishReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FINISH_REASON_UNSPECIFIED: _ClassVar[FinishReason]
    FINISH_REASON_EOS: _ClassVar[FinishReason]
    FINISH_REASON_LENGTH: _ClassVar[FinishReason]
    FINISH_REASON_REPETITION: _ClassVar[FinishReason]
    FINISH_REASON_DEADLINE: _ClassVar[FinishReason]
    FINISH_REASON_CANCELLED: _ClassVar[FinishReason]
PRIORITY_UNSPECIFIED: Priority
PRIORITY_INTERACTIVE: Priority
PRIORITY_BULK: Priority
FINISH_REASON_UNSPECIFIED: FinishReason
FINISH_REASON_EOS: FinishReason
FINISH_REASON_LENGTH: FinishReason
FINISH_REASON_REPETITION: FinishReason
FINISH_REASON_DEADLINE: FinishReason
FINISH_REASON_CANCELLED: FinishReason

class TranslateTextRequest(_message.Message):
    __slots__ = ("contents", "source_language_code", "target_language_code", "model", "mime_type", "options", "request_id", "priority", "all_or_nothing")
    CONTENTS_FIELD_NUMBER: _ClassVar[int]
    SOURCE_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    TARGET_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    MIME_TYPE_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    ALL_OR_NOTHING_FIELD_NUMBER: _ClassVar[int]
    contents: _containers.RepeatedScalarFieldContainer[str]
    source_language_code: str
    target_language_code: str
    model: str
    mime_type: str
    options: TranslateOptions
    request_id: str
    priority: Priority
    all_or_nothing: bool
    def __init__(self, contents: _Optional[_Iterable[str]] = ..., source_language_code: _Optional[str] = ..., target_language_code: _Optional[str] = ..., model: _Optional[str] = ..., mime_type: _Optional[str] = ..., options: _Optional[_Union[TranslateOptions, _Mapping]] = ..., request_id: _Optional[str] = ..., priority: _Optional[_Union[Priority, str]] = ..., all_or_nothing: bool = ...) -> None: ...

class TranslateOptions(_message.Message):
    __slots__ = ("max_target_tokens", "mean_log_probability", "beam_size", "length_penalty", "alternatives", "target_prefix", "alignments", "sampling", "glossary", "protect_placeholders", "xml_tags", "quality_estimate")
    MAX_TARGET_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MEAN_LOG_PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    BEAM_SIZE_FIELD_NUMBER: _ClassVar[int]
    LENGTH_PENALTY_FIELD_NUMBER: _ClassVar[int]
    ALTERNATIVES_FIELD_NUMBER: _ClassVar[int]
    TARGET_PREFIX_FIELD_NUMBER: _ClassVar[int]
    ALIGNMENTS_FIELD_NUMBER: _ClassVar[int]
    SAMPLING_FIELD_NUMBER: _ClassVar[int]
    GLOSSARY_FIELD_NUMBER: _ClassVar[int]
    PROTECT_PLACEHOLDERS_FIELD_NUMBER: _ClassVar[int]
    XML_TAGS_FIELD_NUMBER: _ClassVar[int]
    QUALITY_ESTIMATE_FIELD_NUMBER: _ClassVar[int]
    max_target_tokens: int
    mean_log_probability: bool
    beam_size: int
    length_penalty: float
    alternatives: int
    target_prefix: str
    alignments: bool
    sampling: Sampling
    glossary: Glossary
    protect_placeholders: bool
    xml_tags: XmlTags
    quality_estimate: bool
    def __init__(self, max_target_tokens: _Optional[int] = ..., mean_log_probability: bool = ..., beam_size: _Optional[int] = ..., length_penalty: _Optional[float] = ..., alternatives: _Optional[int] = ..., target_prefix: _Optional[str] = ..., alignments: bool = ..., sampling: _Optional[_Union[Sampling, _Mapping]] = ..., glossary: _Optional[_Union[Glossary, _Mapping]] = ..., protect_placeholders: bool = ..., xml_tags: _Optional[_Union[XmlTags, _Mapping]] = ..., quality_estimate: bool = ...) -> None: ...

class XmlTags(_message.Message):
    __slots__ = ("splitting", "kept")
    SPLITTING_FIELD_NUMBER: _ClassVar[int]
    KEPT_FIELD_NUMBER: _ClassVar[int]
    splitting: _containers.RepeatedScalarFieldContainer[str]
    kept: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, splitting: _Optional[_Iterable[str]] = ..., kept: _Optional[_Iterable[str]] = ...) -> None: ...

class Sampling(_message.Message):
    __slots__ = ("temperature", "top_k", "top_p", "seed")
    TEMPERATURE_FIELD_NUMBER: _ClassVar[int]
    TOP_K_FIELD_NUMBER: _ClassVar[int]
    TOP_P_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    temperature: float
    top_k: int
    top_p: float
    seed: int
    def __init__(self, temperature: _Optional[float] = ..., top_k: _Optional[int] = ..., top_p: _Optional[float] = ..., seed: _Optional[int] = ...) -> None: ...

class Glossary(_message.Message):
    __slots__ = ("entries", "names")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[GlossaryEntry]
    names: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, entries: _Optional[_Iterable[_Union[GlossaryEntry, _Mapping]]] = ..., names: _Optional[_Iterable[str]] = ...) -> None: ...

class GlossaryEntry(_message.Message):
    __slots__ = ("source_term", "target_terms", "ignore_case")
    SOURCE_TERM_FIELD_NUMBER: _ClassVar[int]
    TARGET_TERMS_FIELD_NUMBER: _ClassVar[int]
    IGNORE_CASE_FIELD_NUMBER: _ClassVar[int]
    source_term: str
    target_terms: _containers.RepeatedScalarFieldContainer[str]
    ignore_case: bool
    def __init__(self, source_term: _Optional[str] = ..., target_terms: _Optional[_Iterable[str]] = ..., ignore_case: bool = ...) -> None: ...

class TranslateTextResponse(_message.Message):
    __slots__ = ("translations", "request_id")
    TRANSLATIONS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    translations: _containers.RepeatedCompositeFieldContainer[TranslatedText]
    request_id: str
    def __init__(self, translations: _Optional[_Iterable[_Union[TranslatedText, _Mapping]]] = ..., request_id: _Optional[str] = ...) -> None: ...

class TranslatedText(_message.Message):
    __slots__ = ("translated_text", "model", "source_tokens", "target_tokens", "finish_reason", "segments", "mean_log_probability", "unknown_pieces", "split", "text_error", "pivot_model", "alternatives", "beam_size", "alignments", "seed", "glossary_misses", "detected_language_code", "detection_confidence", "quality_estimate", "segment_qualities")
    TRANSLATED_TEXT_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    SOURCE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    TARGET_TOKENS_FIELD_NUMBER: _ClassVar[int]
    FINISH_REASON_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    MEAN_LOG_PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_PIECES_FIELD_NUMBER: _ClassVar[int]
    SPLIT_FIELD_NUMBER: _ClassVar[int]
    TEXT_ERROR_FIELD_NUMBER: _ClassVar[int]
    PIVOT_MODEL_FIELD_NUMBER: _ClassVar[int]
    ALTERNATIVES_FIELD_NUMBER: _ClassVar[int]
    BEAM_SIZE_FIELD_NUMBER: _ClassVar[int]
    ALIGNMENTS_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    GLOSSARY_MISSES_FIELD_NUMBER: _ClassVar[int]
    DETECTED_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    DETECTION_CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    QUALITY_ESTIMATE_FIELD_NUMBER: _ClassVar[int]
    SEGMENT_QUALITIES_FIELD_NUMBER: _ClassVar[int]
    translated_text: str
    model: str
    source_tokens: int
    target_tokens: int
    finish_reason: FinishReason
    segments: int
    mean_log_probability: float
    unknown_pieces: int
    split: bool
    text_error: TextError
    pivot_model: str
    alternatives: _containers.RepeatedCompositeFieldContainer[Alternative]
    beam_size: int
    alignments: _containers.RepeatedCompositeFieldContainer[WordAlignment]
    seed: int
    glossary_misses: _containers.RepeatedScalarFieldContainer[str]
    detected_language_code: str
    detection_confidence: float
    quality_estimate: float
    segment_qualities: _containers.RepeatedCompositeFieldContainer[SegmentQuality]
    def __init__(self, translated_text: _Optional[str] = ..., model: _Optional[str] = ..., source_tokens: _Optional[int] = ..., target_tokens: _Optional[int] = ..., finish_reason: _Optional[_Union[FinishReason, str]] = ..., segments: _Optional[int] = ..., mean_log_probability: _Optional[float] = ..., unknown_pieces: _Optional[int] = ..., split: bool = ..., text_error: _Optional[_Union[TextError, _Mapping]] = ..., pivot_model: _Optional[str] = ..., alternatives: _Optional[_Iterable[_Union[Alternative, _Mapping]]] = ..., beam_size: _Optional[int] = ..., alignments: _Optional[_Iterable[_Union[WordAlignment, _Mapping]]] = ..., seed: _Optional[int] = ..., glossary_misses: _Optional[_Iterable[str]] = ..., detected_language_code: _Optional[str] = ..., detection_confidence: _Optional[float] = ..., quality_estimate: _Optional[float] = ..., segment_qualities: _Optional[_Iterable[_Union[SegmentQuality, _Mapping]]] = ...) -> None: ...

class SegmentQuality(_message.Message):
    __slots__ = ("target_start", "target_end", "quality_estimate")
    TARGET_START_FIELD_NUMBER: _ClassVar[int]
    TARGET_END_FIELD_NUMBER: _ClassVar[int]
    QUALITY_ESTIMATE_FIELD_NUMBER: _ClassVar[int]
    target_start: int
    target_end: int
    quality_estimate: float
    def __init__(self, target_start: _Optional[int] = ..., target_end: _Optional[int] = ..., quality_estimate: _Optional[float] = ...) -> None: ...

class WordAlignment(_message.Message):
    __slots__ = ("source_start", "source_end", "target_start", "target_end", "weight")
    SOURCE_START_FIELD_NUMBER: _ClassVar[int]
    SOURCE_END_FIELD_NUMBER: _ClassVar[int]
    TARGET_START_FIELD_NUMBER: _ClassVar[int]
    TARGET_END_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    source_start: int
    source_end: int
    target_start: int
    target_end: int
    weight: float
    def __init__(self, source_start: _Optional[int] = ..., source_end: _Optional[int] = ..., target_start: _Optional[int] = ..., target_end: _Optional[int] = ..., weight: _Optional[float] = ...) -> None: ...

class Alternative(_message.Message):
    __slots__ = ("translated_text", "score", "finish_reason", "mean_log_probability")
    TRANSLATED_TEXT_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    FINISH_REASON_FIELD_NUMBER: _ClassVar[int]
    MEAN_LOG_PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    translated_text: str
    score: float
    finish_reason: FinishReason
    mean_log_probability: float
    def __init__(self, translated_text: _Optional[str] = ..., score: _Optional[float] = ..., finish_reason: _Optional[_Union[FinishReason, str]] = ..., mean_log_probability: _Optional[float] = ...) -> None: ...

class TextError(_message.Message):
    __slots__ = ("code", "reason", "message", "metadata", "field")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    CODE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    code: int
    reason: str
    message: str
    metadata: _containers.ScalarMap[str, str]
    field: str
    def __init__(self, code: _Optional[int] = ..., reason: _Optional[str] = ..., message: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ..., field: _Optional[str] = ...) -> None: ...

class StreamTranslateTextResponse(_message.Message):
    __slots__ = ("content_index", "text_delta", "result", "request_id")
    CONTENT_INDEX_FIELD_NUMBER: _ClassVar[int]
    TEXT_DELTA_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    content_index: int
    text_delta: str
    result: TranslatedText
    request_id: str
    def __init__(self, content_index: _Optional[int] = ..., text_delta: _Optional[str] = ..., result: _Optional[_Union[TranslatedText, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class BatchTranslateTextRequest(_message.Message):
    __slots__ = ("config", "contents")
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    CONTENTS_FIELD_NUMBER: _ClassVar[int]
    config: BatchTranslateTextConfig
    contents: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, config: _Optional[_Union[BatchTranslateTextConfig, _Mapping]] = ..., contents: _Optional[_Iterable[str]] = ...) -> None: ...

class BatchTranslateTextConfig(_message.Message):
    __slots__ = ("source_language_code", "target_language_code", "model", "mime_type", "options", "request_id", "priority", "in_order")
    SOURCE_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    TARGET_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    MIME_TYPE_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    IN_ORDER_FIELD_NUMBER: _ClassVar[int]
    source_language_code: str
    target_language_code: str
    model: str
    mime_type: str
    options: TranslateOptions
    request_id: str
    priority: Priority
    in_order: bool
    def __init__(self, source_language_code: _Optional[str] = ..., target_language_code: _Optional[str] = ..., model: _Optional[str] = ..., mime_type: _Optional[str] = ..., options: _Optional[_Union[TranslateOptions, _Mapping]] = ..., request_id: _Optional[str] = ..., priority: _Optional[_Union[Priority, str]] = ..., in_order: bool = ...) -> None: ...

class BatchTranslateTextResponse(_message.Message):
    __slots__ = ("translations", "request_id")
    TRANSLATIONS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    translations: _containers.RepeatedCompositeFieldContainer[BatchTranslation]
    request_id: str
    def __init__(self, translations: _Optional[_Iterable[_Union[BatchTranslation, _Mapping]]] = ..., request_id: _Optional[str] = ...) -> None: ...

class BatchTranslation(_message.Message):
    __slots__ = ("content_index", "translation")
    CONTENT_INDEX_FIELD_NUMBER: _ClassVar[int]
    TRANSLATION_FIELD_NUMBER: _ClassVar[int]
    content_index: int
    translation: TranslatedText
    def __init__(self, content_index: _Optional[int] = ..., translation: _Optional[_Union[TranslatedText, _Mapping]] = ...) -> None: ...

class ScoreTextRequest(_message.Message):
    __slots__ = ("pairs", "source_language_code", "target_language_code", "model", "request_id", "priority", "all_or_nothing")
    PAIRS_FIELD_NUMBER: _ClassVar[int]
    SOURCE_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    TARGET_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    ALL_OR_NOTHING_FIELD_NUMBER: _ClassVar[int]
    pairs: _containers.RepeatedCompositeFieldContainer[TextPair]
    source_language_code: str
    target_language_code: str
    model: str
    request_id: str
    priority: Priority
    all_or_nothing: bool
    def __init__(self, pairs: _Optional[_Iterable[_Union[TextPair, _Mapping]]] = ..., source_language_code: _Optional[str] = ..., target_language_code: _Optional[str] = ..., model: _Optional[str] = ..., request_id: _Optional[str] = ..., priority: _Optional[_Union[Priority, str]] = ..., all_or_nothing: bool = ...) -> None: ...

class TextPair(_message.Message):
    __slots__ = ("source_text", "target_text")
    SOURCE_TEXT_FIELD_NUMBER: _ClassVar[int]
    TARGET_TEXT_FIELD_NUMBER: _ClassVar[int]
    source_text: str
    target_text: str
    def __init__(self, source_text: _Optional[str] = ..., target_text: _Optional[str] = ...) -> None: ...

class ScoreTextResponse(_message.Message):
    __slots__ = ("scores", "request_id")
    SCORES_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    scores: _containers.RepeatedCompositeFieldContainer[TextScore]
    request_id: str
    def __init__(self, scores: _Optional[_Iterable[_Union[TextScore, _Mapping]]] = ..., request_id: _Optional[str] = ...) -> None: ...

class TextScore(_message.Message):
    __slots__ = ("model", "log_probability", "mean_log_probability", "tokens", "source_tokens", "target_tokens", "text_error")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    LOG_PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    MEAN_LOG_PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    SOURCE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    TARGET_TOKENS_FIELD_NUMBER: _ClassVar[int]
    TEXT_ERROR_FIELD_NUMBER: _ClassVar[int]
    model: str
    log_probability: float
    mean_log_probability: float
    tokens: _containers.RepeatedCompositeFieldContainer[TokenScore]
    source_tokens: int
    target_tokens: int
    text_error: TextError
    def __init__(self, model: _Optional[str] = ..., log_probability: _Optional[float] = ..., mean_log_probability: _Optional[float] = ..., tokens: _Optional[_Iterable[_Union[TokenScore, _Mapping]]] = ..., source_tokens: _Optional[int] = ..., target_tokens: _Optional[int] = ..., text_error: _Optional[_Union[TextError, _Mapping]] = ...) -> None: ...

class TokenScore(_message.Message):
    __slots__ = ("piece", "log_probability")
    PIECE_FIELD_NUMBER: _ClassVar[int]
    LOG_PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    piece: str
    log_probability: float
    def __init__(self, piece: _Optional[str] = ..., log_probability: _Optional[float] = ...) -> None: ...

class DetectLanguageRequest(_message.Message):
    __slots__ = ("contents", "mime_type", "request_id")
    CONTENTS_FIELD_NUMBER: _ClassVar[int]
    MIME_TYPE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    contents: _containers.RepeatedScalarFieldContainer[str]
    mime_type: str
    request_id: str
    def __init__(self, contents: _Optional[_Iterable[str]] = ..., mime_type: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class DetectLanguageResponse(_message.Message):
    __slots__ = ("detections", "request_id")
    DETECTIONS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    detections: _containers.RepeatedCompositeFieldContainer[DetectedLanguages]
    request_id: str
    def __init__(self, detections: _Optional[_Iterable[_Union[DetectedLanguages, _Mapping]]] = ..., request_id: _Optional[str] = ...) -> None: ...

class DetectedLanguages(_message.Message):
    __slots__ = ("languages",)
    LANGUAGES_FIELD_NUMBER: _ClassVar[int]
    languages: _containers.RepeatedCompositeFieldContainer[DetectedLanguage]
    def __init__(self, languages: _Optional[_Iterable[_Union[DetectedLanguage, _Mapping]]] = ...) -> None: ...

class DetectedLanguage(_message.Message):
    __slots__ = ("language_code", "confidence")
    LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    language_code: str
    confidence: float
    def __init__(self, language_code: _Optional[str] = ..., confidence: _Optional[float] = ...) -> None: ...

class ListModelsRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListModelsResponse(_message.Message):
    __slots__ = ("models", "next_page_token")
    MODELS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    models: _containers.RepeatedCompositeFieldContainer[Model]
    next_page_token: str
    def __init__(self, models: _Optional[_Iterable[_Union[Model, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class Model(_message.Message):
    __slots__ = ("name", "source_language_code", "target_language_code", "precision", "max_source_tokens", "max_target_tokens", "vocabulary_size", "checkpoint_sha256", "source_language_codes", "target_language_codes", "family", "note")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SOURCE_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    TARGET_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    PRECISION_FIELD_NUMBER: _ClassVar[int]
    MAX_SOURCE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MAX_TARGET_TOKENS_FIELD_NUMBER: _ClassVar[int]
    VOCABULARY_SIZE_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_SHA256_FIELD_NUMBER: _ClassVar[int]
    SOURCE_LANGUAGE_CODES_FIELD_NUMBER: _ClassVar[int]
    TARGET_LANGUAGE_CODES_FIELD_NUMBER: _ClassVar[int]
    FAMILY_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    name: str
    source_language_code: str
    target_language_code: str
    precision: str
    max_source_tokens: int
    max_target_tokens: int
    vocabulary_size: int
    checkpoint_sha256: str
    source_language_codes: _containers.RepeatedScalarFieldContainer[str]
    target_language_codes: _containers.RepeatedScalarFieldContainer[str]
    family: str
    note: str
    def __init__(self, name: _Optional[str] = ..., source_language_code: _Optional[str] = ..., target_language_code: _Optional[str] = ..., precision: _Optional[str] = ..., max_source_tokens: _Optional[int] = ..., max_target_tokens: _Optional[int] = ..., vocabulary_size: _Optional[int] = ..., checkpoint_sha256: _Optional[str] = ..., source_language_codes: _Optional[_Iterable[str]] = ..., target_language_codes: _Optional[_Iterable[str]] = ..., family: _Optional[str] = ..., note: _Optional[str] = ...) -> None: ...

class ListGlossariesRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListGlossariesResponse(_message.Message):
    __slots__ = ("glossaries", "next_page_token")
    GLOSSARIES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    glossaries: _containers.RepeatedCompositeFieldContainer[StoredGlossary]
    next_page_token: str
    def __init__(self, glossaries: _Optional[_Iterable[_Union[StoredGlossary, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class StoredGlossary(_message.Message):
    __slots__ = ("name", "source_language_code", "target_language_code", "entries")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SOURCE_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    TARGET_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    name: str
    source_language_code: str
    target_language_code: str
    entries: int
    def __init__(self, name: _Optional[str] = ..., source_language_code: _Optional[str] = ..., target_language_code: _Optional[str] = ..., entries: _Optional[int] = ...) -> None: ...
