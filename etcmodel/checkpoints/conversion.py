"""Converts checkpoints from one format into another, BERT's into ETC's included."""

import os

from etcmodel.checkpoints import bert_names, coverage, lifting, sources, strict, writing
from etcmodel.checkpoints import names as names_lib
from etcmodel.checkpoints.report import LoadReport
from etcmodel.models import encoders

__all__ = ["convert"]


def convert(
    checkpoint, output_dir, output_format, *, config=None, token_rows=None, overwrite=False
):
    """Converts a checkpoint to another format, bit by bit the same.

    All weights are kept, also those of heads; training state (Adam's moments, `global_step`) is
    not. From BERT and RoBERTa, a new ETC model is initialized first (`lift_bert`). With a config,
    the checkpoint must match it: no weight of the encoder may have another shape, be missing
    (except for relative labels and the global side's normalization), or be superfluous.

    Args:
        checkpoint: path, as in `open_source`.
        output_dir: str. Where to write the checkpoint and, if it is known, the config's file.
        output_format: 'released' (TF1 names), 'tf2' (`tf.train.Checkpoint`) or 'safetensors'.
        config: `EncoderConfig`; by default the one in the checkpoint's directory, if any.
        token_rows: as in `lift_bert`; only for BERT and RoBERTa.
        overwrite: bool. Whether an existing checkpoint may be replaced.
    Returns:
        (path of the checkpoint written, `LoadReport` of what was loaded from where).
    Raises:
        ValueError: if the checkpoint cannot be read, has encoder weights that are not floats, does
            not match the config, needs one that is missing, or one of that format exists in
            `output_dir`.

    >>> from etcmodel import checkpoints
    >>> path, report = checkpoints.convert("my_model", "released", "released")
    >>> path, len(report.loaded)
    ('released/model.ckpt', 32)
    """
    writing.check_place(output_dir, output_format)
    source = sources.open_source(checkpoint)
    config = config or _config_beside(source)
    if not overwrite:
        writing.check_absent(output_dir, output_format, config)  # Before the work, and again after.
    if bert_names.find_bert(source):
        values, report = _lifted(source, config, token_rows)
    elif token_rows is not None:
        raise ValueError(f"Vocabularies are mapped for BERT only, and {source.path!r} is of ETC.")
    else:
        # Others may be anything, such as counters.
        strict.check(source, filter(names_lib.is_in_encoder, source.shapes))
        missing = () if config is None else coverage.check_config(source, config)
        values = {name: source.read(name) for name in source.shapes}
        # Only an object checkpoint has all weights of the model.
        initial = missing if output_format == sources.OBJECTS else ()
        report = LoadReport(source.path, tuple(values), initial, (), source.training_state)
    path = writing.write(values, output_dir, output_format, config=config, overwrite=overwrite)
    return path, report


def _config_beside(source):
    path = encoders.config_file_in(os.path.dirname(source.path))
    config = encoders.read_config(path) if path else None
    if config and encoders.encoder_type(config.model_type).seq2seq_classes:
        raise ValueError(
            f"{path} is of a model with an encoder and a decoder (type {config.model_type!r}), "
            "whose folders have one format, Hugging Face's: there is nothing to convert."
        )
    return config


def _lifted(source, config, token_rows):
    """Values of a new ETC model initialized from BERT, and the report."""
    if config is None:
        raise ValueError("Lifting BERT needs the config of the ETC model (--model_config_file).")
    model = encoders.build_encoder(config)
    report = lifting.lift_bert(model, source, token_rows=token_rows)
    return {name: v.numpy() for name, v in names_lib.release_names(model).items()}, report
