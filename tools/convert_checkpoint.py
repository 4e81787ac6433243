"""Converts a checkpoint of ETC, BERT or RoBERTa into an ETC checkpoint in any format.

    python -m etcmodel.tools.convert_checkpoint --input=etc_base_2x_pretrain/model.ckpt \\
        --output_dir=converted --output_format=safetensors

    python -m etcmodel.tools.convert_checkpoint --input=bert-base-uncased/model.safetensors \\
        --preset=etc_base --output_dir=etc_from_bert --output_format=released

Weights are copied bit by bit, including those of task heads; Adam's moments and the step are not.
`etcmodel.load_pretrained` and `--init_checkpoint` can load the result, with the config and the
vocabulary that are beside the checkpoint, or those of the training run that wrote it.
Prints where each weight went.
"""

import dataclasses
import json
import os
import sys

from etcmodel import file_systems
from etcmodel.models import presets
from etcmodel.options import Options, option, run_program
from etcmodel.text import processor_files


@dataclasses.dataclass(frozen=True, kw_only=True)
class ConvertOptions(Options):
    """What becomes what."""

    aliases = {"etc_config_file": "model_config_file"}

    input: str = option(
        "",
        "Checkpoint to read: the path prefix of a TensorFlow checkpoint (ETC with the authors' "
        "names or written by tf.train.Checkpoint; original BERT; a Model Garden BERT encoder), a "
        ".safetensors file (ETC, or Hugging Face's BERT or RoBERTa), or a directory with one of "
        "these.",
        is_needed=True,
    )
    output_dir: str = option("", "Directory to write the new checkpoint to.", is_needed=True)
    output_format: str = option(
        "released",
        "Format to write. released: model.ckpt, with the names of the authors' checkpoints; tf2: "
        "ckpt, readable by tf.train.Checkpoint(model=EtcModel(config)); safetensors: "
        "model.safetensors.",
        choices=("released", "tf2", "safetensors"),
    )
    model_config_file: str | None = option(
        None,
        "JSON config of the ETC model. None: etc_config.json beside --input, if there is one, or "
        "else that of the training run whose folder it is. Without one of these, this "
        "flag or --preset is needed to initialize ETC from BERT or RoBERTa and to write tf2.",
    )
    preset: str | None = option(
        None,
        "Name of a predefined config, instead of --model_config_file.",
        choices=tuple(sorted(presets.PRESETS)),
    )
    source_vocab: str | None = option(
        None,
        "Vocabulary of the BERT or RoBERTa checkpoint (vocab.txt, vocab.json or SentencePiece "
        ".model), if the ETC model has a different one: embeddings are then matched by token.",
    )
    target_vocab: str | None = option(
        None, "Vocabulary of the ETC model; goes with --source_vocab."
    )
    vocab_file: str | None = option(
        None,
        "Vocabulary of any kind to write beside the checkpoint. None: --target_vocab, or else what "
        "is beside --input, or else that of the training run whose folder it is.",
    )
    overwrite: bool = option(False, "Replace an existing checkpoint in --output_dir.")

    def __post_init__(self):
        super().__post_init__()
        if self.preset and self.model_config_file:
            raise ValueError("Give --preset or --model_config_file, not both.")
        if bool(self.source_vocab) != bool(self.target_vocab):
            raise ValueError("--source_vocab and --target_vocab belong together: give both.")


def run(options):
    """Converts as `ConvertOptions` say, and prints what went where.

    Raises:
        ValueError: as `conversion.convert`.
    """
    from etcmodel.checkpoints import conversion, pretrained  # With TensorFlow.

    given, folder = options.vocab_file or options.target_vocab, _folder_of(options.input)
    config = _config(options.preset, options.model_config_file)
    needs_vocabulary = not (given or processor_files.has_vocabulary(folder))
    needs_config = config is None and not pretrained.has_config(folder)
    run = _run_in(folder) if needs_vocabulary or needs_config else None
    of_run = _vocabulary_of(run) if run and needs_vocabulary else None
    if run and needs_config:
        config = _config_of(run)
    path, report = conversion.convert(
        options.input,
        options.output_dir,
        options.output_format,
        config=config,
        token_rows=options.source_vocab
        and conversion.token_rows(options.source_vocab, options.target_vocab),
        overwrite=options.overwrite,
        vocab_file=given or (of_run and _files_of(run, *of_run)),
    )
    print(report.table())
    if run and needs_config and config is None:
        print(
            f"No config is written, which `from_pretrained` needs: {run.source} has none of ETC. "
            "`etcmodel save_pretrained NAME` makes a whole folder of the runs of some programs.",
            file=sys.stderr,
        )
    if of_run:
        print(f"The vocabulary is that of {run.source}: {of_run[1]}")
    print(f"{len(report.loaded)} variables: {report.checkpoint} -> {path}")


def _folder_of(path):
    path = path if "://" in path else os.path.abspath(path)
    return path if file_systems.gfile().isdir(path) else os.path.dirname(path)


def _run_in(folder):
    """The `TrainedRun` that wrote a folder's checkpoint; None if there is none."""
    from etcmodel.finetuning import trained_run  # With TensorFlow.

    return _unless_damaged(lambda: trained_run.TrainedRun.find(None, os.path.join(folder, "")))


def _config_of(run):
    """The config of the run's model; None if it is of a program that keeps none, or no ETC."""
    try:
        config = run.encoder_config()
    except ValueError:
        return None
    return config if config.model_type in ("etc", "etc_modernbert") else None


def _vocabulary_of(run):
    """(option, path) of the run's vocabulary; None if it has none, or it is gone."""
    return _unless_damaged(lambda: next(iter(run.vocabulary().items()), None))


def _unless_damaged(find):
    """What the function finds; None where it raises a ValueError, which is told."""
    try:
        return find()
    except ValueError as error:
        print(f"No vocabulary is written: {error}", file=sys.stderr)
        return None


def _files_of(run, name, path):
    """The files of the run's vocabulary, with how its texts were tokenized: dict to bytes."""
    from etcmodel.checkpoints import processors  # With TensorFlow.

    has_pieces = name == "spm_model_file"
    files = processors.files_of_vocabulary(path, has_pieces=has_pieces)
    if not has_pieces and processor_files.is_byte_level(path):  # It has no such settings.
        return files
    settings = {"split_punctuation": bool(run.options.get("split_punctuation"))}
    known = run.options.get("do_lower_case", run.notes.get("do_lower_case"))
    if has_pieces or known is not None:  # Else the vocabulary's capitals tell.
        settings["do_lower_case"] = has_pieces or known
    config = processor_files.TOKENIZER_CONFIG  # It may list added tokens.
    settings = {**json.loads(files.get(config, b"{}")), **settings}
    return {**files, config: json.dumps(settings).encode()}


def _config(name, path):
    if name:
        return presets.preset(name)
    from etcmodel.models import encoders  # Imports TensorFlow, which takes seconds.

    return encoders.read_config(path) if path else None


if __name__ == "__main__":
    run_program(ConvertOptions, run, section="convert")
