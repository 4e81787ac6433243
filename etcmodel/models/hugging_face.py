"""What configs of Hugging Face's models have in common."""

__all__ = ["ACTIVATIONS", "WITHOUT_EFFECT", "activation"]

# Their names of activations to those of `tensor_utils.get_activation`.
ACTIVATIONS = {
    "gelu": "gelu_exact",
    "gelu_fast": "gelu",
    "gelu_new": "gelu",
    "gelu_pytorch_tanh": "gelu",
    "relu": "relu",
    "tanh": "tanh",
}
_SWISH = ("silu", "swish")
# Entries that change no hidden state: of heads, of training, of text, of programs.
WITHOUT_EFFECT = frozenset(
    [
        "_attn_implementation_autoset",
        "_name_or_path",
        "architectures",
        "attn_implementation",
        "bos_token_id",
        "chunk_size_feed_forward",
        "classifier_dropout",
        "cls_token_id",
        "directionality",
        "dtype",
        "eos_token_id",
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
        "problem_type",
        "return_dict",
        "sep_token_id",
        "task_specific_params",
        "tie_word_embeddings",
        "tokenizer_class",
        "torch_dtype",
        "torchscript",
        "transformers_version",
        "unk_token_id",
        "use_bfloat16",
        "use_cache",
    ]
)


def activation(name):
    """The activation that Hugging Face calls so: a function.

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
        raise ValueError(f"Unknown activation {name!r}; choose one of {known}")
    return tensor_utils.get_activation(ACTIVATIONS[name])
