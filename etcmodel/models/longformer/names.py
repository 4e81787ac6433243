"""The names of Longformer's weights in Hugging Face's files."""

from etcmodel.models.systems import Weights

__all__ = ["WEIGHTS"]

_LAYER = r"longformer/layers/{}_layer_(\d+)"
_ATTENTION, _FEED_FORWARD = _LAYER.format("attention"), _LAYER.format("feed_forward")
_IN_LAYER = r"longformer.encoder.layer.\1"


def _dense(ours, theirs):
    """Kernels are [in, out], Hugging Face's weights [out, in]."""
    return (f"{ours}/kernel", f"{theirs}.weight"), (f"{ours}/bias", f"{theirs}.bias")


def _norm(ours, theirs):
    return (f"{ours}/gamma", f"{theirs}.weight"), (f"{ours}/beta", f"{theirs}.bias")


_NAMES = (
    (
        r"longformer/(word|position|token_type)_embeddings/embedding_table",
        r"longformer.embeddings.\1_embeddings.weight",
    ),
    *_norm("longformer/embedding_norm", "longformer.embeddings.LayerNorm"),
    *(
        pair
        for name in ("query", "key", "value", "query_global", "key_global", "value_global")
        for pair in _dense(
            f"{_ATTENTION}/self_attention/{name}/linear", f"{_IN_LAYER}.attention.self.{name}"
        )
    ),
    *_dense(f"{_ATTENTION}/self_attention/output", f"{_IN_LAYER}.attention.output.dense"),
    *_norm(f"{_ATTENTION}/layer_norm", f"{_IN_LAYER}.attention.output.LayerNorm"),
    *_dense(f"{_FEED_FORWARD}/dense_layers/layer_0", f"{_IN_LAYER}.intermediate.dense"),
    *_dense(f"{_FEED_FORWARD}/dense_layers/layer_1", f"{_IN_LAYER}.output.dense"),
    *_norm(f"{_FEED_FORWARD}/layer_norm", f"{_IN_LAYER}.output.LayerNorm"),
    *_dense("longformer/pooler", "longformer.pooler.dense"),
    *_dense("mlm/transform/dense", "lm_head.dense"),
    *_norm("mlm/transform/LayerNorm", "lm_head.layer_norm"),
    ("mlm/bias", "lm_head.bias"),
    *_dense("classifier_dense", "classifier.dense"),
    # `TokenLogits` has its weights as Hugging Face has them.
    ("classifier_out/weights", "classifier.out_proj.weight"),
    ("classifier_out/bias", "classifier.out_proj.bias"),
    (r"(classifier|qa_outputs)/weights", r"\1.weight"),
    (r"(classifier|qa_outputs)/bias", r"\1.bias"),
)


def _encoder_options(names, head_class):
    """Arguments of `LongformerModel`: most heads do without the pooler.

    Args:
        names: of the tensors of a file.
        head_class: class of a `LongformerHead`, or None.
    Raises:
        ValueError: if the class is of another system.
    """
    if head_class is not None:
        if not hasattr(head_class, "needs_pooler"):
            raise ValueError(f"{head_class.__name__} is no head of a Longformer.")
        return {"add_pooling_layer": head_class.needs_pooler}
    return {"add_pooling_layer": any("pooler." in name for name in names)}


WEIGHTS = Weights(
    prefix="longformer.",
    names=_NAMES,
    copies={
        "lm_head.decoder.weight": "longformer.embeddings.word_embeddings.weight",
        "lm_head.decoder.bias": "lm_head.bias",
    },
    obsolete=("longformer.embeddings.position_ids",),  # The numbers from 0 on.
    encoder_options=_encoder_options,
)
