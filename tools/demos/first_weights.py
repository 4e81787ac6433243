"""Writes a checkpoint of initial weights for the small model of the pre-training demo.

They are those of `--initialization=mimetic`, adjusted by numbers found on the demo's data: small
labels and token types, so that token identity outweighs them at first, and a preference for linked
tokens.
"""

import dataclasses

from etcmodel.options import Options, option, run_program

__all__ = ["prefer_identity_and_links"]

_LINK_LOGIT = 2.0
_LABEL_EMBEDDING_SCALE = 0.2
_SEGMENT_EMBEDDING_SCALE = 0.3


@dataclasses.dataclass(frozen=True, kw_only=True)
class FirstWeightsOptions(Options):
    """Of what model, and where to."""

    model_config_file: str = option("", "JSON file with the model's sizes.", is_file=True)
    output_dir: str = option("", "Directory to write the checkpoint to.")
    seed: int = option(0, "Seed of the random values.")


def prefer_identity_and_links(etc_model):
    """Makes labels and token types of a new `EtcModel` small, and links preferred."""
    from etcmodel.models import initialization  # With TensorFlow.

    table = etc_model.segment_emb_lookup.embedding_table
    table.assign(table * _SEGMENT_EMBEDDING_SCALE)
    initialization.prefer_labels(
        etc_model,
        {etc_model.config.relation_labels().linked: _LINK_LOGIT},
        embedding_scale=_LABEL_EMBEDDING_SCALE,
    )


def main(options):
    """Writes the checkpoint that `FirstWeightsOptions` describe."""
    # TensorFlow takes seconds to import, which `--help` need not wait for.
    import tf_keras

    from etcmodel import checkpoints
    from etcmodel.checkpoints import sources, writing
    from etcmodel.models import encoders, initialization

    config = encoders.read_config(options.model_config_file)
    tf_keras.utils.set_random_seed(options.seed)
    model = encoders.build_encoder(config)
    initialization.mimetic_initialization(model, options.seed)
    prefer_identity_and_links(model)
    values = {name: v.numpy() for name, v in checkpoints.release_names(model).items()}
    print(writing.write(values, options.output_dir, sources.SAFETENSORS, config=config))


if __name__ == "__main__":
    run_program(FirstWeightsOptions, main)
