"""How the cases of GMAT are run, and of encoders of Hugging Face's that are kin to it."""

import tensorflow as tf

from etcmodel.checkpoints import hugging_face
from etcmodel.models.longt5 import LongT5Config, LongT5Model
from etcmodel.models.pegasus_x import PegasusXConfig, PegasusXModel
from tests.reference.gmat_arrays import SAMPLE, TOPIC, arrays_of, assert_close, load
from tests.reference.gmat_attention import check_attention, check_pattern
from tests.reference.gmat_models import check_compression, check_encoder, check_positions
from tests.reference.gmat_tagging import check_majority, check_scoring
from tests.reference.gmat_training import check_bert_adam, check_mlm_scores

__all__ = ["COMPILED_KINDS", "SAMPLE", "TOPIC", "check", "load"]

# Of models; the others have nothing that XLA would compile.
COMPILED_KINDS = ("attention", "encoder", "compression", "longt5", "pegasus_x")


def _check_states(model, arrays, names, is_compiled):
    """Compares an encoder of Hugging Face's, whose weights are set by their names there."""
    for name, weight in hugging_face.places(model).items():
        known = [f"w.{x}" for x in names(name)]
        if found := next((x for x in known if x in arrays), None):
            value = arrays[found]
            weight.variable.assign(value.T if weight.is_transposed else value)
        else:
            assert not name.startswith("encoder."), name
    call = tf.function(model.encoder, jit_compile=is_compiled or None, autograph=False)
    outputs = call(
        arrays["input_ids"], attention_mask=arrays["attention_mask"], output_hidden_states=True
    )
    rows = arrays["attention_mask"] > 0
    for number, found in enumerate(outputs["hidden_states"]):
        wanted = arrays.get(f"hidden_{number}", arrays.get("last_hidden_state"))
        if f"hidden_{number}" in arrays or "last_hidden_state" in arrays:
            assert_close(found, wanted, rows=rows, name=f"layer {number}")
    return outputs


def check_longt5(case, is_compiled=False):
    config, arrays = case["config"], arrays_of(case)
    model = LongT5Model(
        LongT5Config(
            vocab_size=len(arrays["w.shared.weight"]),
            d_model=config["d_model"],
            d_kv=config["d_kv"],
            d_ff=config["d_ff"],
            num_layers=config["layers"],
            num_heads=config["heads"],
            local_radius=config["local_radius"],
            global_block_size=config["global_block_size"],
            relative_attention_num_buckets=config["buckets"],
            relative_attention_max_distance=config["max_distance"],
            feed_forward_proj="gated-gelu",
            encoder_attention_type=config["attention"],
        )
    )
    _build(model)
    _check_states(model, arrays, lambda name: (name,), is_compiled)


def check_pegasus_x(case, is_compiled=False):
    config, arrays = case["config"], arrays_of(case)
    model = PegasusXModel(
        PegasusXConfig(
            vocab_size=len(arrays["w.embed_tokens.weight"]),
            d_model=config["d_model"],
            encoder_layers=config["layers"],
            encoder_attention_heads=config["heads"],
            decoder_attention_heads=config["heads"],
            decoder_layers=1,
            decoder_ffn_dim=4,
            encoder_ffn_dim=config["ffn"],
            activation_function=config["activation"],
            scale_embedding=config["scale_embedding"],
            num_global_tokens=config["num_global_tokens"],
            block_size=config["block_size"],
            stagger_local_blocks=config["stagger_local_blocks"],
        )
    )
    _build(model)
    bare = {"shared.weight": "embed_tokens.weight"}
    names = lambda name: (bare.get(name, name.removeprefix("encoder.")),)  # noqa: E731
    outputs = _check_states(model, arrays, names, is_compiled)
    assert_close(outputs["global_states"][-1], arrays["global_final"])


def _build(model):
    with tf.name_scope(model.name):
        model.build(None)


_CHECKS = {
    "attention": check_attention,
    "pattern": check_pattern,
    "encoder": check_encoder,
    "compression": check_compression,
    "positions": check_positions,
    "majority": check_majority,
    "scoring": check_scoring,
    "mlm_scores": check_mlm_scores,
    "bert_adam": check_bert_adam,
    "longt5": check_longt5,
    "pegasus_x": check_pegasus_x,
}


def check(case, **options):
    """Runs a case, and compares all that it has.

    Args:
        case: dict.
        **options: `is_compiled`, bool: whether by XLA, of `COMPILED_KINDS`.
    """
    _CHECKS[case["kind"]](case, **options)
