"""Converts a checkpoint of ETC, BERT or RoBERTa into a checkpoint of ETC of any format.

    python -m etcmodel.tools.convert_checkpoint --input=etc_base_2x_pretrain/model.ckpt \\
        --output_dir=converted --output_format=safetensors

    python -m etcmodel.tools.convert_checkpoint --input=bert-base-uncased/model.safetensors \\
        --preset=etc_base --output_dir=etc_from_bert --output_format=released

Every weight is kept bit by bit, those of task heads included; Adam's moments and the step are not.
`etcmodel.load_pretrained` and `--init_checkpoint` take what is written. Prints what went where.
"""

import tensorflow as tf
from absl import app, flags

from etcmodel.checkpoints import conversion, vocabulary_map
from etcmodel.models import modeling, presets

_FORMATS = ("released", "tf2", "safetensors")


def define_flags(flag_values):
    """Defines this program's flags in `flag_values`."""
    flags.DEFINE_string(
        "input",
        None,
        "Checkpoint to read: path prefix of a TensorFlow checkpoint (ETC with the authors' names "
        "or of tf.train.Checkpoint; original BERT; a Model Garden BERT encoder), a .safetensors "
        "file (ETC, or Hugging Face's BERT or RoBERTa), or a directory with one of them.",
        required=True,
        flag_values=flag_values,
    )
    flags.DEFINE_string(
        "output_dir",
        None,
        "Directory for the new checkpoint.",
        required=True,
        flag_values=flag_values,
    )
    flags.DEFINE_enum(
        "output_format",
        "released",
        _FORMATS,
        "released: model.ckpt, names as in the authors' checkpoints; tf2: ckpt, to be read by "
        "tf.train.Checkpoint(model=EtcModel(config)); safetensors: model.safetensors.",
        flag_values=flag_values,
    )
    flags.DEFINE_string(
        "etc_config_file",
        None,
        "JSON config of the ETC model; by default etc_config.json beside --input. Needed (or "
        "--preset) to lift BERT or RoBERTa and to write tf2.",
        flag_values=flag_values,
    )
    flags.DEFINE_enum(
        "preset",
        None,
        sorted(presets.PRESETS),
        "Config by name, instead of --etc_config_file.",
        flag_values=flag_values,
    )
    flags.DEFINE_string(
        "source_vocab",
        None,
        "Vocabulary of the BERT or RoBERTa that is lifted (vocab.txt, vocab.json or SentencePiece "
        ".model), if the ETC model has another: rows of the table then follow the pieces.",
        flag_values=flag_values,
    )
    flags.DEFINE_string(
        "target_vocab",
        None,
        "Vocabulary of the ETC model, with --source_vocab.",
        flag_values=flag_values,
    )
    flags.DEFINE_bool(
        "overwrite", False, "Replace an older checkpoint in --output_dir.", flag_values=flag_values
    )


def _config(name, path):
    if name and path:
        raise ValueError("Give --preset or --etc_config_file, not both.")
    if name:
        return presets.preset(name)
    return modeling.EtcConfig.from_json_file(path) if path else None


def _token_rows(source, target):
    if bool(source) != bool(target):
        raise ValueError("--source_vocab and --target_vocab belong together: give both.")
    return vocabulary_map.token_rows(source, target) if source else None


def run(options):
    """Converts as the flags' values say, and prints what went where.

    Raises:
        ValueError: as `conversion.convert`, or if flags contradict each other.
    """
    path, report = conversion.convert(
        options.input,
        options.output_dir,
        options.output_format,
        config=_config(options.preset, options.etc_config_file),
        token_rows=_token_rows(options.source_vocab, options.target_vocab),
        overwrite=options.overwrite,
    )
    print(report.table())
    print(f"{len(report.loaded)} variables: {report.checkpoint} -> {path}")


def main(unused_argv):
    try:
        run(flags.FLAGS)
    except (ValueError, OSError, tf.errors.OpError) as error:
        raise SystemExit(f"convert_checkpoint: {getattr(error, 'message', error)}") from None


if __name__ == "__main__":
    define_flags(flags.FLAGS)
    app.run(main)
