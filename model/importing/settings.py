"""Keys of config.json: used keys, keys without effect, and keys with one supported value."""

from collections.abc import Collection, Mapping
from typing import Any, Final

from pydantic import ValidationError

from dragoman.errors import DataError
from dragoman.invalid import describe
from model.config import Activation, TransformerConfig
from model.importing.source import CONFIG, Source

# Keys without effect on greedy decoding, in files of transformers 3 to 5.
_HARMLESS_WORDS: Final = """
_name_or_path _commit_hash architectures attn_implementation _attn_implementation _attn_implementation_autoset
classif_dropout classifier_dropout unsloth_fixed
dtype encoder_layerdrop decoder_layerdrop finetuning_task gradient_checkpointing id2label init_std
keys_to_ignore_at_inference label2id max_length min_length model_type num_hidden_layers hidden_size
num_attention_heads num_labels _num_labels output_attentions output_hidden_states output_past
output_scores pad_token_id bos_token_id eos_token_id sep_token_id prefix problem_type return_dict
return_dict_in_generate task_specific_params tf_legacy_loss tokenizer_class torch_dtype torchscript
transformers_version use_bfloat16 use_cache dropout attention_dropout activation_dropout save_step
chunk_size_feed_forward tie_word_embeddings output_router_logits do_sample early_stopping num_beams
num_beam_groups diversity_penalty temperature top_k top_p typical_p length_penalty num_return_sequences
forced_eos_token_id forced_bos_token_id decoder_start_token_id bad_words_ids suppress_tokens
begin_suppress_tokens repetition_penalty no_repeat_ngram_size encoder_no_repeat_ngram_size
exponential_decay_length_penalty remove_invalid_values unk_token_id force_bos_token_to_be_generated summary_type
"""
_HARMLESS: Final = frozenset(_HARMLESS_WORDS.split())

# Other values of these keys would be another model.
_FIXED: Final[Mapping[str, Any]] = {
    "is_encoder_decoder": True,
    "is_decoder": False,
    "add_cross_attention": False,
    "tie_encoder_decoder": False,
    "cross_attention_hidden_size": None,
    "pruned_heads": {},
    "per_layer_config": {},
}

ACTIVATIONS: Final[Mapping[str, Activation]] = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_accurate": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_python_tanh": "gelu_tanh",
    "quick_gelu": "gelu_sigmoid",
    "silu": "silu",
    "swish": "silu",
    "tanh": "tanh",
}


def check_keys(
    source: Source, used: Collection[str], fixed: Mapping[str, Any], architecture: str, harmless: Collection[str] = ()
) -> None:
    """Refuse a config.json with unknown keys or values.

    Args:
        source: the folder.
        used: the keys that the family reads.
        fixed: keys of the family with their only supported value.
        architecture: the class of the model.
        harmless: further keys without effect.

    Raises:
        DataError: a key is unknown, or has an unsupported value.
    """
    config, file = source.config, source.folder / CONFIG
    named = config.get("architectures") or [architecture]
    if named != [architecture]:
        raise DataError(f"{file}: architectures is {', '.join(map(str, named))}; only {architecture} translates")
    demands = {**_FIXED, **fixed}
    for key, value in config.items():
        if key in demands:
            if value != demands[key] and (value or demands[key]):
                raise DataError(f"{file}: {key} is {value!r:.80}; only {demands[key]!r} is supported")
        elif key not in used and key not in _HARMLESS and key not in harmless:
            raise DataError(f"{file}: {key} is unknown here, and may change what the model computes: {value!r:.80}")


def configuration(source: Source, **fields: Any) -> TransformerConfig:
    """Make the configuration of a checkpoint.

    Raises:
        DataError: fields contradict each other, or a value is out of range.
    """
    try:
        return TransformerConfig(**fields)
    except ValidationError as error:
        raise DataError(f"{source.folder / CONFIG}: {describe(error)}") from error


def activation(source: Source, key: str, default: str) -> Activation:
    """Find the activation that a key of config.json names.

    Raises:
        DataError: the activation is not supported.
    """
    name = source.config.get(key) or default
    if str(name) not in ACTIVATIONS:  # a list cannot be looked up
        known = ", ".join(ACTIVATIONS)
        raise DataError(f"{source.folder / CONFIG}: {key} is {name!r}; supported are {known}")
    return ACTIVATIONS[name]


def whole(source: Source, key: str, default: int) -> int:
    """Read a whole number from config.json.

    Raises:
        DataError: the value is no whole number.
    """
    value = source.config.get(key)
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise DataError(f"{source.folder / CONFIG}: {key} must be a whole number, is {value!r:.80}")
    return value


def flag(source: Source, key: str, default: bool) -> bool:
    """Read a truth value from config.json.

    Raises:
        DataError: the value is no truth value.
    """
    value = source.config.get(key)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise DataError(f"{source.folder / CONFIG}: {key} must be true or false, is {value!r:.80}")
    return value
