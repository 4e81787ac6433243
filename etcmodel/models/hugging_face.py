"""Shared parts of Hugging Face's configs."""

from etcmodel import shown_values

# Hugging Face's names of activations to those of `tensor_utils.get_activation`.
ACTIVATIONS = {
    "gelu": "gelu_exact",
    "gelu_fast": "gelu",
    "gelu_new": "gelu",
    "gelu_pytorch_tanh": "gelu",
    "relu": "relu",
    "tanh": "tanh",
}
_SWISH = ("silu", "swish")
# Settings of `generate` that older files have. Encoders do not generate; those of other models are
# read by `generation_config`.
GENERATION = frozenset(
    [
        "bad_words_ids",
        "begin_suppress_tokens",
        "decoder_start_token_id",
        "diversity_penalty",
        "do_sample",
        "early_stopping",
        "encoder_no_repeat_ngram_size",
        "encoder_repetition_penalty",
        "epsilon_cutoff",
        "eta_cutoff",
        "exponential_decay_length_penalty",
        "forced_bos_token_id",
        "forced_decoder_ids",
        "forced_eos_token_id",
        "guidance_scale",
        "length_penalty",
        "max_length",
        "max_new_tokens",
        "min_length",
        "min_new_tokens",
        "no_repeat_ngram_size",
        "num_beam_groups",
        "num_beams",
        "num_return_sequences",
        "output_scores",
        "penalty_alpha",
        "remove_invalid_values",
        "renormalize_logits",
        "repetition_penalty",
        "return_dict_in_generate",
        "suppress_tokens",
        "temperature",
        "top_k",
        "top_p",
        "typical_p",
    ]
)
# Entries that do not affect what models compute: about heads, training, text, programs.
WITHOUT_EFFECT = GENERATION | {
    "_attn_implementation",
    "_attn_implementation_autoset",
    "_attn_implementation_internal",
    "_commit_hash",
    "_name_or_path",
    "_num_labels",
    "architectures",
    "attn_implementation",
    "bos_token_id",
    "chunk_size_feed_forward",
    "classifier_dropout",
    "cls_token_id",
    "directionality",
    "dtype",
    "eos_token_id",
    "eos_token_ids",
    "finetuning_task",
    "gradient_checkpointing",
    "id2label",
    "label2id",
    "language",
    "mask_token_id",
    "name",
    "num_labels",
    "output_attentions",
    "output_hidden_states",
    "output_past",
    "prefix",
    "problem_type",
    "return_dict",
    "sep_token_id",
    "task_specific_params",
    "tf_legacy_loss",
    "tie_word_embeddings",
    "tokenizer_class",
    "torch_dtype",
    "torchscript",
    "transformers_version",
    "unk_token_id",
    "use_bfloat16",
    "use_cache",
    "xla_device",
}
# Entries that affect it unless they have one of these values, the usual one first.
ONLY = {
    "position_embedding_type": ("absolute", None),
    "is_decoder": (False, None),
    "is_encoder_decoder": (False, None),
    "add_cross_attention": (False, None),
    "cross_attention_hidden_size": (None,),
    "tie_encoder_decoder": (False, None),
    "pruned_heads": ({}, None),
    "quantization_config": (None,),
}


def check_descriptions(entries):
    """Raises ValueError, naming the entry, if a `config.json` describes its classes wrongly."""
    architectures(entries)
    labels(entries)
    kind = entries.get("problem_type")
    if kind is not None and not isinstance(kind, str):
        raise ValueError(f"`problem_type` must be a name. Received: {shown_values.shown(kind)}")


def architectures(entries):
    """Returns the class names in a `config.json`: tuple of str.

    Raises:
        ValueError: if they are not names.
    """
    named = entries.get("architectures")
    named = [named] if isinstance(named, str) else [] if named is None else named
    if not isinstance(named, (list, tuple)) or not all(isinstance(x, str) for x in named):
        raise ValueError(
            f"`architectures` must be a list of names. Received: {shown_values.shown(named)}"
        )
    return tuple(named)


def labels(entries):
    """Reads the labels in a `config.json`.

    Args:
        entries: dict.
    Returns:
        (int, list of str): their number, and their names in order; no names if they are just the
        default ones, or incomplete.
    Raises:
        ValueError: naming the entry, if it has a wrong type.
    """
    names, number = entries.get("id2label"), entries.get("num_labels")
    number = 2 if number is None else number
    if type(number) is not int or number < 1:
        raise ValueError(
            f"`num_labels` must be an int of at least 1. Received: {shown_values.shown(number)}"
        )
    if names is None:
        return number, []
    plain = (str, int, float, type(None))
    if not isinstance(names, dict) or not all(isinstance(x, plain) for x in names.values()):
        raise ValueError(
            f"`id2label` must be names by number. Received: {shown_values.shown(names)}"
        )
    number = len(names) or number
    names = [names.get(str(index)) for index in range(number)]
    is_named = all(isinstance(name, str) for name in names) and names != usual_labels(number)
    return number, names if is_named else []


def usual_labels(number):
    """Returns the default names of labels: list of str."""
    return [f"LABEL_{index}" for index in range(number)]


def activation(name):
    """Returns the activation function of a Hugging Face name.

    Raises:
        ValueError: if the name is unknown.
    """
    # With TensorFlow, which takes seconds to import.
    from etcmodel import tensor_utils
    from etcmodel.ops import activations

    if name in _SWISH:
        return activations.swish
    if name not in ACTIVATIONS:
        known = ", ".join(sorted([*ACTIVATIONS, *_SWISH]))
        raise ValueError(f"Unknown activation {shown_values.shown(name)}; choose one of {known}")
    return tensor_utils.get_activation(ACTIVATIONS[name])


def head_settings(entries, head_class):
    """Returns a head's constructor arguments, from the entries of a `config.json`.

    Args:
        entries: dict.
        head_class: class of an `EncoderWithHead`.
    Raises:
        ValueError: naming the entry, if it has a wrong type.
    """
    settings, known = {}, head_class.setting_types()
    if "num_labels" in known:
        number, names = labels(entries)
        settings["num_labels"] = number
        if names:
            settings["labels"] = names
        if "problem_type" in known:
            default = "regression" if number == 1 else "single_label_classification"
            kind = entries.get("problem_type")
            settings["problem_type"] = default if kind is None else kind
    return settings


def head_entries(model):
    """Returns the entries of a `config.json` for an `EncoderWithHead`: the inverse."""
    settings, entries = model.settings(), {}
    if "num_labels" in settings:
        names = settings.get("labels") or usual_labels(settings["num_labels"])
        entries["id2label"] = {str(number): name for number, name in enumerate(names)}
        entries["label2id"] = {name: number for number, name in enumerate(names)}
    if "problem_type" in settings:
        entries["problem_type"] = settings["problem_type"]
    is_untied = not getattr(model.encoder.config, "tie_word_embeddings", True)
    if is_untied and getattr(model, "is_always_tied", False):
        # Hugging Face's model would have a matrix of its own, which no file has.
        entries["tie_word_embeddings"] = True
    return entries
