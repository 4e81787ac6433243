"""Small character models, with weights that are not their initial ones, and their slow twin."""

import math

import numpy as np

from etcmodel.models.longformer_char_lm import CharLmConfig, CharLmModel
from tests.models import etcs
from tests.models.random_weights import built
from tests.ops import numpy_sliding_window

CONFIG = {
    "vocab_size": 11,
    **etcs.sizes(num_hidden_layers=3),
    "attention_window": (2, 3, 5),
    "attention_dilation": (1, 1, (1, 2)),
    **etcs.NO_DROPOUT,
}


def config(**changes):
    return CharLmConfig(**{**CONFIG, **changes})


def model(dtype=None, **changes):
    """A built model whose weights depend on nothing but their shapes and order."""
    return built(CharLmModel(config(**changes), dtype=dtype))


def ids(length, batch=2, seed=0):
    return np.random.default_rng(seed).integers(0, CONFIG["vocab_size"], [batch, length])


def logits(made, given):
    """What the model says of ids [batch, length], written as the paper says it."""
    weights = {weight.name.removesuffix(":0"): weight.numpy() for weight in made.weights}
    prefix = made.name
    table = weights[f"{prefix}/embeddings/embedding_table"]
    hidden = table[given]
    for layer in range(made.config.num_hidden_layers):
        for name, part in (("attention_layer", _attention), ("feed_forward_layer", _feed_forward)):
            at = f"{prefix}/layers/{name}_{layer}"
            of_part = {
                name.removeprefix(f"{at}/"): x for name, x in weights.items() if f"{at}/" in name
            }
            normal = _normalized(hidden, of_part, "layer_norm", made.config)
            hidden = hidden + part(normal, of_part, made.config, layer)
    of_norm = {name.removeprefix(f"{prefix}/"): x for name, x in weights.items()}
    return (
        _normalized(hidden, of_norm, "output_norm", made.config) @ table.T + of_norm["output_bias"]
    )


def _normalized(x, weights, name, config):
    spread = np.sqrt(x.var(-1, keepdims=True) + config.layer_norm_eps)
    return (x - x.mean(-1, keepdims=True)) / spread * weights[f"{name}/gamma"] + weights[
        f"{name}/beta"
    ]


def _attention(x, weights, config, layer):
    at, (batch, length, size), heads = "self_attention", x.shape, config.num_attention_heads

    def project(name):
        flat = x @ weights[f"{at}/{name}/linear/kernel"] + weights[f"{at}/{name}/linear/bias"]
        return flat.reshape(batch, length, heads, size // heads)

    queries, keys, values = map(project, ("query", "key", "value"))
    of_positions = [
        weights[f"{at}/{name}"] for name in ("position_projection", "content_bias", "position_bias")
    ]
    dilation = config.dilations[layer]
    by_head = dilation if isinstance(dilation, tuple) else (dilation,) * heads
    all_tokens = np.ones([batch, length], bool)
    sees = numpy_sliding_window.dense_mask(
        length, [(config.windows[layer], 0, gap) for gap in by_head], all_tokens, ~all_tokens
    )
    of_pairs = numpy_sliding_window.distance_logits(queries, *of_positions, keys)
    outputs, _ = numpy_sliding_window.attend(queries, keys, values, sees, of_pairs)
    flat = outputs.reshape(batch, length, size)
    return flat @ weights[f"{at}/output/kernel"] + weights[f"{at}/output/bias"]


def _feed_forward(x, weights, config, layer):
    (kernel, bias), (kernel_out, bias_out) = (
        [x for name, x in sorted(weights.items(), reverse=True) if f"_{number}/" in name]
        for number in (0, 1)
    )
    inner = x @ kernel + bias
    gelu = inner * (1 + np.vectorize(math.erf)(inner / math.sqrt(2))) / 2
    return gelu @ kernel_out + bias_out
