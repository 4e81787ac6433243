"""Small BERTs of random weights in every format, and a slow BERT in NumPy."""

import json
import math
import os

import numpy as np
import safetensors.numpy
import tensorflow as tf

from etcmodel.models import modeling

HIDDEN, LAYERS, HEADS, INTERMEDIATE, VOCAB, POSITIONS, TYPES = 8, 2, 2, 12, 11, 6, 2
SIZES = {  # Of a stack of layers, in the config of any encoder.
    "hidden_size": HIDDEN,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "intermediate_size": INTERMEDIATE,
}
ENTRIES = {
    **SIZES,
    "vocab_size": VOCAB,
    "max_position_embeddings": POSITIONS,
    "type_vocab_size": TYPES,
}
ETC_CONFIG = modeling.EtcConfig(
    **SIZES,
    vocab_size=VOCAB,
    segment_vocab_size=TYPES,
    local_radius=2,
    relative_pos_max_distance=1,
    relative_vocab_size=6,
    max_absolute_position_embeddings=POSITIONS,
)

LAYER_SHAPES = {
    "attention.self.query": (HIDDEN, HIDDEN),
    "attention.self.key": (HIDDEN, HIDDEN),
    "attention.self.value": (HIDDEN, HIDDEN),
    "attention.output.dense": (HIDDEN, HIDDEN),
    "attention.output.LayerNorm": (HIDDEN,),
    "intermediate.dense": (INTERMEDIATE, HIDDEN),
    "output.dense": (HIDDEN, INTERMEDIATE),
    "output.LayerNorm": (HIDDEN,),
}


def hugging_face_weights(
    *, prefix="bert.", positions=POSITIONS, types=TYPES, vocab_size=VOCAB, seed=0
):
    """Random weights by their Hugging Face names; kernels are [outputs, inputs]."""
    rng = np.random.default_rng(seed)
    shapes = {
        "embeddings.word_embeddings.weight": (vocab_size, HIDDEN),
        "embeddings.position_embeddings.weight": (positions, HIDDEN),
        "embeddings.token_type_embeddings.weight": (types, HIDDEN),
        "embeddings.LayerNorm.weight": (HIDDEN,),
        "embeddings.LayerNorm.bias": (HIDDEN,),
        "pooler.dense.weight": (HIDDEN, HIDDEN),
        "pooler.dense.bias": (HIDDEN,),
    }
    for layer in range(LAYERS):
        for name, shape in LAYER_SHAPES.items():
            shapes[f"encoder.layer.{layer}.{name}.weight"] = shape
            shapes[f"encoder.layer.{layer}.{name}.bias"] = shape[:1]
    return {
        prefix + name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()
    }


def roberta_weights(vocab_size=VOCAB, length=POSITIONS):
    """RoBERTa's: two more rows of positions are of padding, and there is one token type."""
    rows = length + 2
    return hugging_face_weights(prefix="roberta.", positions=rows, types=1, vocab_size=vocab_size)


def masked_lm_weights(vocab_size=VOCAB, seed=1, *, of_roberta=False):
    """The head for masked tokens in Hugging Face's names, without the table of tokens."""
    random = np.random.default_rng(seed)
    transform, norm = ("", "layer_norm") if of_roberta else ("transform.", "LayerNorm")
    shapes = {
        f"{transform}dense.weight": (HIDDEN, HIDDEN),
        f"{transform}dense.bias": (HIDDEN,),
        f"{transform}{norm}.weight": (HIDDEN,),
        f"{transform}{norm}.bias": (HIDDEN,),
        "bias": (vocab_size,),
    }
    prefix = "lm_head" if of_roberta else "cls.predictions"
    return {
        f"{prefix}.{name}": random.normal(0, 0.3, x).astype(np.float32)
        for name, x in shapes.items()
    }


def original_name(name):
    """The original BERT's name of a Hugging Face name."""
    name = name.replace("encoder.layer.", "encoder.layer_")
    owner, kind = name.rsplit(".", 1)
    owner = owner.replace(".", "/")
    if "LayerNorm" in owner:
        return f"{owner}/{'gamma' if kind == 'weight' else 'beta'}"
    if owner.endswith("_embeddings"):
        return owner
    return f"{owner}/{'kernel' if kind == 'weight' else 'bias'}"


def original_weights(weights):
    """The same in the original BERT's form: kernels are [inputs, outputs]."""
    renamed = {original_name(name): value for name, value in weights.items()}
    return {name: v.T if name.endswith("/kernel") else v for name, v in renamed.items()}


def write_config(directory, **entries):
    """A Hugging Face config beside the weights."""
    config = {"model_type": "bert", "num_attention_heads": HEADS, **entries}
    with open(os.path.join(directory, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file)


def write_folder(folder, words, model_type="bert", **entries):
    """A new folder as Hugging Face writes it, with a vocabulary of these words; returns it.

    All types but "bert" are of RoBERTa's family.
    """
    folder.mkdir()
    sizes = {**ENTRIES, "vocab_size": max(VOCAB, len(words))}
    weights = hugging_face_weights(vocab_size=sizes["vocab_size"])
    if model_type != "bert":
        weights = roberta_weights(sizes["vocab_size"])
        sizes |= {"max_position_embeddings": POSITIONS + 2, "type_vocab_size": 1}
    write_safetensors(folder, weights)
    write_config(folder, **{"model_type": model_type, **sizes, **entries})
    (folder / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    return folder


def write_safetensors(directory, weights):
    path = os.path.join(directory, "model.safetensors")
    safetensors.numpy.save_file({n: np.asarray(v, order="C") for n, v in weights.items()}, path)
    return path


def write_released(directory, values, name="model.ckpt"):
    """What the authors' TF1 programs write: the V2 format, without an object graph."""
    prefix = os.path.join(directory, name)
    names = list(values)
    tensors = [tf.convert_to_tensor(values[name]) for name in names]
    tf.raw_ops.SaveV2(
        prefix=prefix, tensor_names=names, shape_and_slices=[""] * len(names), tensors=tensors
    )
    return prefix


def model_garden_encoder(weights, encoder_class):
    """Model Garden's encoder with these weights (Hugging Face names, prefix "bert.")."""
    encoder = encoder_class(
        vocab_size=VOCAB,
        hidden_size=HIDDEN,
        num_layers=LAYERS,
        num_attention_heads=HEADS,
        max_sequence_length=POSITIONS,
        type_vocab_size=TYPES,
        inner_dim=INTERMEDIATE,
    )
    ids = np.zeros([1, 2], np.int32)
    encoder({"input_word_ids": ids, "input_mask": ids + 1, "input_type_ids": ids})

    def assign(layer, name, *, is_norm=False):
        kernel, bias = weights[f"bert.{name}.weight"], weights[f"bert.{name}.bias"]
        first, second = (layer.gamma, layer.beta) if is_norm else (layer.kernel, layer.bias)
        first.assign((kernel if is_norm else kernel.T).reshape(first.shape))
        second.assign(bias.reshape(second.shape))

    encoder.get_embedding_table().assign(weights["bert.embeddings.word_embeddings.weight"])
    by_name = {v.name.split(":")[0].removeprefix(f"{encoder.name}/"): v for v in encoder.weights}
    by_name["position_embedding/embeddings"].assign(
        weights["bert.embeddings.position_embeddings.weight"]
    )
    by_name["type_embeddings/embeddings"].assign(
        weights["bert.embeddings.token_type_embeddings.weight"]
    )
    by_name["embeddings/layer_norm/gamma"].assign(weights["bert.embeddings.LayerNorm.weight"])
    by_name["embeddings/layer_norm/beta"].assign(weights["bert.embeddings.LayerNorm.bias"])
    for index, layer in enumerate(encoder.transformer_layers):
        at = f"encoder.layer.{index}"
        attention = layer._attention_layer
        assign(attention._query_dense, f"{at}.attention.self.query")
        assign(attention._key_dense, f"{at}.attention.self.key")
        assign(attention._value_dense, f"{at}.attention.self.value")
        assign(attention._output_dense, f"{at}.attention.output.dense")
        assign(layer._attention_layer_norm, f"{at}.attention.output.LayerNorm", is_norm=True)
        assign(layer._intermediate_dense, f"{at}.intermediate.dense")
        assign(layer._output_dense, f"{at}.output.dense")
        assign(layer._output_layer_norm, f"{at}.output.LayerNorm", is_norm=True)
    return encoder


def exact_gelu(x):
    return x * 0.5 * (1.0 + np.vectorize(math.erf)(x / math.sqrt(2.0)))


def normalized(x, scale, shift, epsilon=1e-12):
    """Layer normalization of the last axis."""
    centered = x - x.mean(-1, keepdims=True)
    return centered / np.sqrt((centered**2).mean(-1, keepdims=True) + epsilon) * scale + shift


def numpy_masked_lm(hidden, head, table, epsilon=1e-12):
    """Logits in float64: of hidden states, `masked_lm_weights` and the table of tokens."""
    kernel, bias, scale, shift, output_bias = (x.astype(np.float64) for x in head.values())
    inner = normalized(exact_gelu(hidden @ kernel.T + bias), scale, shift, epsilon)
    return inner @ np.asarray(table, np.float64).T + output_bias


def numpy_berts(weights, token_ids, input_mask, **options):
    """`numpy_bert` of a batch's rows, one at a time: float64 [batch, len, hidden]."""
    rows = zip(token_ids, input_mask, strict=True)
    return np.stack([numpy_bert(weights, ids, mask, **options) for ids, mask in rows])


def numpy_bert(weights, token_ids, input_mask, *, num_heads=HEADS, epsilon=1e-12):
    """BERT's last hidden states in float64, from Hugging Face names.

    Args:
        weights: dict of name to array. Names may have a prefix: with RoBERTa's, the first two
            rows of positions are of padding.
        token_ids: int [len].
        input_mask: bool [len]. True for real tokens.
        num_heads: int.
        epsilon: float. Added to the variance by layer normalization.
    Returns:
        float64 [len, hidden].
    """
    first_position = 2 if any(name.startswith("roberta.") for name in weights) else 0
    weights = {
        name.removeprefix("bert.").removeprefix("roberta."): np.asarray(value, np.float64)
        for name, value in weights.items()
    }

    def dense(x, name):
        return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def norm(x, name):
        return normalized(x, weights[f"{name}.weight"], weights[f"{name}.bias"], epsilon)

    def heads(x):
        return x.reshape(len(x), num_heads, -1).swapaxes(0, 1)  # [heads, len, size]

    positions = np.arange(len(token_ids)) + first_position
    hidden = norm(
        weights["embeddings.word_embeddings.weight"][token_ids]
        + weights["embeddings.position_embeddings.weight"][positions]
        + weights["embeddings.token_type_embeddings.weight"][0],
        "embeddings.LayerNorm",
    )
    num_layers = sum(name.endswith("attention.self.query.weight") for name in weights)
    for layer in range(num_layers):
        at = f"encoder.layer.{layer}"
        query, key, value = (
            heads(dense(hidden, f"{at}.attention.self.{part}"))
            for part in ("query", "key", "value")
        )
        logits = query @ key.swapaxes(1, 2) / math.sqrt(query.shape[-1])
        logits = np.where(input_mask[np.newaxis, np.newaxis], logits, -np.inf)
        probs = np.exp(logits - logits.max(-1, keepdims=True))
        probs /= probs.sum(-1, keepdims=True)
        context = (probs @ value).swapaxes(0, 1).reshape(hidden.shape)
        attended = dense(context, f"{at}.attention.output.dense")
        hidden = norm(hidden + attended, f"{at}.attention.output.LayerNorm")
        inner = exact_gelu(dense(hidden, f"{at}.intermediate.dense"))
        hidden = norm(hidden + dense(inner, f"{at}.output.dense"), f"{at}.output.LayerNorm")
    return hidden
