"""A slow BART, by its own names of weights: what `lift_bart` is compared with."""

import math

import numpy as np

_erf = np.vectorize(math.erf)


def logits(weights, num_heads, ids, mask, decoder_ids):
    """Logits of a BART with post-normalization.

    Args:
        weights: dict of name to array, of a file of Hugging Face's.
        num_heads: int. Of encoder and decoder.
        ids, mask: int [length].
        decoder_ids: int [target_length].
    Returns:
        float64 [target_length, vocab_size].
    """
    w = {name.removeprefix("model."): x.astype(np.float64) for name, x in weights.items()}

    def dense(name, x):
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    def norm(name, x):
        x = x - x.mean(-1, keepdims=True)
        x /= np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5)
        return x * w[f"{name}.weight"] + w[f"{name}.bias"]

    def attend(name, x, others, allowed):
        q, k, v = (
            dense(f"{name}.{p}_proj", y) for p, y in {"q": x, "k": others, "v": others}.items()
        )
        parts = [np.split(y, num_heads, axis=-1) for y in (q, k, v)]
        heads = []
        for q, k, v in zip(*parts, strict=True):
            scores = np.where(allowed, q @ k.T / np.sqrt(q.shape[-1]), -np.inf)
            probs = np.exp(scores - scores.max(-1, keepdims=True))
            heads.append(probs / probs.sum(-1, keepdims=True) @ v)
        return dense(f"{name}.out_proj", np.concatenate(heads, axis=-1))

    def embed(side, ids):
        positions = w[f"{side}.embed_positions.weight"][2 : 2 + len(ids)]
        return norm(f"{side}.layernorm_embedding", w["shared.weight"][ids] + positions)

    def rest(name, x):
        inner = dense(f"{name}.fc1", x)
        inner = dense(f"{name}.fc2", inner * (1 + _erf(inner / np.sqrt(2))) / 2)
        return norm(f"{name}.final_layer_norm", x + inner)

    def names(side):
        count = len([x for x in w if x.startswith(f"{side}.") and x.endswith("fc1.bias")])
        return [f"{side}.layers.{number}" for number in range(count)]

    is_token = np.asarray(mask, bool)[np.newaxis]
    hidden = embed("encoder", ids)
    for name in names("encoder"):
        attended = attend(f"{name}.self_attn", hidden, hidden, is_token)
        hidden = rest(name, norm(f"{name}.self_attn_layer_norm", hidden + attended))
    x, before = embed("decoder", decoder_ids), np.tri(len(decoder_ids), dtype=bool)
    for name in names("decoder"):
        x = norm(f"{name}.self_attn_layer_norm", x + attend(f"{name}.self_attn", x, x, before))
        attended = attend(f"{name}.encoder_attn", x, hidden, is_token)
        x = rest(name, norm(f"{name}.encoder_attn_layer_norm", x + attended))
    return x @ w["shared.weight"].T + w["final_logits_bias"][0]
