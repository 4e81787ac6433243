"""Defaults of `generate`: Hugging Face's `generation_config.json`."""

import dataclasses
import json
import os
import types
from collections.abc import Mapping

import numpy as np
import tensorflow as tf

from etcmodel import bounded_json, shown_values
from etcmodel.generation import GenerationSettings
from etcmodel.generation.settings import tokens_of
from etcmodel.models import json_config

__all__ = [
    "FILE_NAME",
    "GenerationConfig",
    "read",
    "read_file",
    "settings_of",
    "start_token_of",
    "with_tokens",
]

FILE_NAME = "generation_config.json"
_SETTINGS = {field.name: field for field in dataclasses.fields(GenerationSettings)}
# Lengths without the start token or the prompt.
_NEW_TOKENS = ("max_new_tokens", "min_new_tokens")
_TOKENS = ("decoder_start_token_id", "eos_token_id", "pad_token_id")
_START = _TOKENS[0]
_FORCED = ("forced_bos_token_id", "forced_eos_token_id")
# Hugging Face's settings that are not supported, unless they are neutral: None, false, zero or
# empty; these also if they are 1.
_NEUTRAL_AT_1 = (
    "encoder_repetition_penalty",
    "guidance_scale",
    "num_beam_groups",
    "typical_p",
)
_OTHERS = (
    *_NEUTRAL_AT_1,
    "begin_suppress_tokens",
    "constraints",
    "diversity_penalty",
    "dola_layers",
    "encoder_no_repeat_ngram_size",
    "epsilon_cutoff",
    "eta_cutoff",
    "exponential_decay_length_penalty",
    "force_words_ids",
    "forced_decoder_ids",
    "max_time",
    "min_p",
    "penalty_alpha",
    "renormalize_logits",
    "sequence_bias",
    "stop_strings",
    "suppress_tokens",
    "token_healing",
    "top_h",
    "watermarking_config",
)
# Entries that do not change sequences: about what is returned, speed, other kinds of models.
_WITHOUT_EFFECT = frozenset(
    [
        "assistant_confidence_threshold",
        "assistant_early_exit",
        "assistant_lookbehind",
        "bos_token_id",
        "cache_config",
        "cache_implementation",
        "compile_config",
        "disable_compile",
        "generation_kwargs",
        "is_assistant",
        "low_memory",
        "max_matching_ngram_size",
        "num_assistant_tokens",
        "num_assistant_tokens_schedule",
        "output_attentions",
        "output_hidden_states",
        "output_logits",
        "output_scores",
        "prefill_chunk_size",
        "prompt_lookup_num_tokens",
        "remove_invalid_values",
        "return_dict_in_generate",
        "return_legacy_cache",
        "target_lookbehind",
        "transformers_version",
        "use_cache",
    ]
)


@dataclasses.dataclass(frozen=True)
class GenerationConfig:
    """The entries of a `generation_config.json`.

    Attributes:
        entries: dict by name. Those of `GenerationSettings`, and `max_new_tokens` and
            `min_new_tokens`, which do not count the start token or the prompt; others are kept for
            Hugging Face's library.
    Raises:
        ValueError: naming the entry, if it has a wrong type or is out of range.
    """

    entries: Mapping

    def __post_init__(self):
        _read_settings(self.entries)

    def unsupported(self):
        """dict of the entries that change sequences and that `generate` does not support."""
        return {
            name: value
            for name, value in self.entries.items()
            if not _is_known_or_neutral(name, value)
        }

    def to_json_string(self):
        """Returns JSON text, sorted and indented, with a newline at the end."""
        entries = {name: json_config.python_numbers(x) for name, x in self.entries.items()}
        return json.dumps(entries, indent=2, sort_keys=True) + "\n"


def read_file(path):
    """Reads a `generation_config.json`: `GenerationConfig`, or None if there is no file.

    Raises:
        ValueError: naming the file, if it is damaged or an entry has a wrong type.
    """
    if not tf.io.gfile.exists(path):
        return None
    return _config(bounded_json.read_object(path), path)


def _config(entries, path):
    try:
        return GenerationConfig(entries)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def read(directory, config):
    """Reads the generation config of a folder in Hugging Face's layout.

    Args:
        directory: str.
        config: the model's config. Older folders have the entries in `config.json`, which is used
            then; its special tokens are the model's, too.
    Returns:
        `GenerationConfig`, or None if the folder has no such entries.
    Raises:
        ValueError: naming the file and the entry, if one has a wrong type.
    """
    if found := read_file(os.path.join(directory, FILE_NAME)):
        return found
    path = os.path.join(directory, "config.json")
    if not tf.io.gfile.exists(path):
        return None
    of_model = bounded_json.read_object(path)
    names = (*_SETTINGS, *_NEW_TOKENS, *_OTHERS)
    own = _own(config, (*names, "bos_token_id"))
    entries = {x: of_model[x] for x in names if x in of_model and x not in own}
    first = of_model.get("bos_token_id")
    if of_model.get(_START) is None and first not in (None, own.get(_START)):
        own.pop(_START, None)  # It is the class's default: `settings_of` compares the two tokens.
        entries["bos_token_id"] = first
    if not entries:
        return None
    return _config({**entries, **own}, path)


def _own(config, names):
    """Those of the settings that are entries of a config: dict.

    A property of such a name means something else: GMAT's `max_length` is that of its texts.
    """
    fields = {field.name for field in dataclasses.fields(config)}
    return {name: getattr(config, name) for name in names if name in fields}


def settings_of(given, config, defaults=None, prompt_length=1):
    """Returns the settings of one call of `generate`.

    Args:
        given: dict of the call's options, which take precedence; None stands for Hugging Face's
            default.
        config: the model's config, which has the special tokens.
        defaults: `GenerationConfig` or None.
        prompt_length: int. Tokens that a sequence begins with, 1 for the start token alone.
    Returns:
        `GenerationSettings`, with all special tokens.
    Raises:
        ValueError: naming the setting, if it is unknown or invalid; if there is no start, end or
            padding token; or if the prompt is not shorter than `max_length`.
    """
    entries = {} if defaults is None else defaults.entries
    for name in given:
        if not (name in _SETTINGS or name in _NEW_TOKENS or name in _OTHERS or name in entries):
            raise ValueError(f"`generate` has no setting `{name}`.")
    for name, value in {**entries, **given}.items():
        if not _is_known_or_neutral(name, value):
            place = "The call" if name in given else f"`{FILE_NAME}`"
            shown = shown_values.named([name])
            raise ValueError(
                f"{place} has `{shown}`, {shown_values.shown(value)}, which `generate` does not "
                f"know. Give it `{shown}=None` to do without."
            )
    # A call overrides an entry; passing None also overrides one that stands for another.
    entries = {name: x for name, x in entries.items() if name not in given}
    own = _own(config, _SETTINGS) if defaults is None else {}
    settings = {
        **own,
        **_read_settings(entries, prompt_length),
        **_read_settings(given, prompt_length, keeps_none=True),
    }
    tokens = {name: getattr(config, name) for name in _TOKENS}
    if given.get(_START) is None and defaults is not None:
        _check_start(defaults, tokens[_START])
    usual = {**tokens, "max_length": GenerationSettings.max_length - 1 + prompt_length}
    settings = {**usual, **{name: x for name, x in settings.items() if x is not None}}
    _check_tokens(settings, config.vocab_size)
    made = GenerationSettings(**settings)
    if made.max_length <= prompt_length:
        raise ValueError(
            "`max_length` must be above the length of the prompt, `decoder_input_ids` with the "
            f"start token, {prompt_length}. Received: {made.max_length}"
        )
    return made


def with_tokens(defaults, config):
    """Returns a `GenerationConfig` with the special tokens of a model where it has none.

    Hugging Face's library reads them from its file alone: without an end token, nothing would end.

    Args:
        defaults: `GenerationConfig`.
        config: the model's config.
    """
    missing = [name for name in _TOKENS if defaults.entries.get(name) is None]
    if _has_other_start(defaults, getattr(config, _START)):
        missing.remove(_START)  # Which one is right is still to be said.
    tokens = {name: getattr(config, name) for name in missing}
    tokens = {name: token for name, token in tokens.items() if token is not None}
    return GenerationConfig({**defaults.entries, **tokens})


def _check_start(defaults, own):
    """Raises ValueError if Hugging Face's library would begin with another token than `own`."""
    if _has_other_start(defaults, own):
        first = defaults.entries["bos_token_id"]
        raise ValueError(
            f"`{_START}` is missing in the settings of generation: Hugging Face's library (5) "
            f"would begin with their `bos_token_id`, {shown_values.shown(first)}, and the model's "
            f"config says {own}. Add `{_START}` to `{FILE_NAME}`, or give it to `generate`."
        )


def _has_other_start(defaults, own):
    """Whether settings without a start token have a `bos_token_id` that is not the config's."""
    is_missing = defaults.entries.get(_START) is None
    return is_missing and defaults.entries.get("bos_token_id") not in (None, own)


def start_token_of(given, own, defaults=None):
    """The start token that `settings_of` finds: int, or None if there is none.

    Args:
        given, defaults: see there.
        own: int or None. The config's.
    """
    name, entries = _START, {} if defaults is None else defaults.entries
    found = given[name] if name in given else entries.get(name)
    return own if not isinstance(found, (int, np.integer)) else int(found)


def _check_tokens(settings, vocab_size):
    if settings[_START] is None:
        raise ValueError(f"The config has no `{_START}`: load the model with `{_START}=0`, say.")
    for name in ("eos_token_id", "pad_token_id"):
        if settings[name] is None:
            raise ValueError(
                f"The config has no `{name}`: give it to `generate`, or to the config."
            )
    given = {x: settings[x] for x in (_START, *_FORCED) if x in settings}
    words = [("bad_words_ids", word) for word in settings.get("bad_words_ids", ())]
    several = [(name, x) for name, x in (*given.items(), *words) if x is not None]
    for name, token in [(name, x) for name, tokens in several for x in tokens_of(tokens)]:
        if not 0 <= token < vocab_size:
            raise ValueError(
                f"`{name}` must be at least 0 and below {vocab_size}, which is "
                f"`vocab_size`. Received: {token}"
            )


def _is_known_or_neutral(name, value):
    if name in _SETTINGS or name in _NEW_TOKENS or name in _WITHOUT_EFFECT or name.startswith("_"):
        return True
    return not value or (name in _NEUTRAL_AT_1 and value == 1)


def _read_settings(entries, prompt_length=1, keeps_none=False):
    """Reads entries as `GenerationSettings`, by name; `keeps_none` keeps those that are None.

    Raises:
        ValueError: naming the entry, if it has a wrong type.
    """
    entries = dict(entries)
    for name in {"eos_token_id", *_FORCED} & set(entries):  # One token, or a list of several.
        tokens = entries[name]
        tokens = tokens.tolist() if isinstance(tokens, np.ndarray) else tokens
        if isinstance(tokens, (list, tuple)):
            tokens = tuple(dict.fromkeys(json_config.python_numbers(list(tokens))))
            entries[name] = tokens[0] if len(tokens) == 1 else tokens
    # NumPy's numbers would be inputs of a traced function, where settings are values.
    entries = {name: x.item() if isinstance(x, np.generic) else x for name, x in entries.items()}
    found = {name: x for name, x in entries.items() if name in _SETTINGS}
    if found.get("bad_words_ids") is not None:
        found["bad_words_ids"] = _words(found["bad_words_ids"])
    for name, value in found.items():
        if value is not None:
            _check_alone(name, value)
    for name in _NEW_TOKENS:
        if (number := entries.get(name)) is not None:
            field = types.SimpleNamespace(name=name, type=int)
            json_config.check_entry(field, number, least=int(name == "max_new_tokens"))
            # It takes precedence over the entry for whole lengths.
            whole = {"max_new_tokens": "max_length", "min_new_tokens": "min_length"}[name]
            found[whole] = prompt_length + number
    return {name: x for name, x in found.items() if keeps_none or x is not None}


def _words(words):
    """`bad_words_ids` as a tuple of tuples of int; raises ValueError if they are something else."""
    given, words = words, words.tolist() if isinstance(words, np.ndarray) else words
    is_list = isinstance(words, (list, tuple))
    words = [x if isinstance(x, (list, tuple)) else () for x in words] if is_list else [()]
    words = [[t.item() if isinstance(t, np.integer) else t for t in x] for x in words]
    if not all(x and all(type(token) is int and token >= 0 for token in x) for x in words):
        raise ValueError(
            "`bad_words_ids` must be a list of lists of token ids. Received: "
            f"{shown_values.shown(given)}"
        )
    return tuple(map(tuple, words))


def _check_alone(name, value):
    """Raises ValueError, naming a setting of `GenerationSettings`, if its value is never valid."""
    field = _SETTINGS[name]
    if name == "bad_words_ids":
        return
    if (
        field.type is float
    ):  # A penalty may be negative, and only sampling requires a positive temperature.
        json_config.check_type(field, value)
        json_config.check_finite(name, value)
        return
    json_config.check_entry(field, value, least=-bounded_json.MAX_INT if name == "seed" else 0)
    if name != "max_length":  # How short it may be depends on the prompt.
        most = {"max_length": bounded_json.MAX_INT}
        if name == "num_return_sequences":
            most["num_beams"] = value
        GenerationSettings(**{**most, name: value})
