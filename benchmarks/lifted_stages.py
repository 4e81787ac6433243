"""The stages of `lifted_pretraining`, each of which is resumed or reused."""

import json
import os

import numpy as np
import tensorflow as tf

from benchmarks import lifted_pretraining, programs
from benchmarks import texts as texts_lib
from etcmodel import atomic_files, checkpoints, extras, training
from etcmodel.checkpoints import hugging_face, writing
from etcmodel.models import encoders
from etcmodel.models.longformer import LongformerConfig
from etcmodel.preprocessing import program as preprocessing_program
from etcmodel.pretrain import model as pretrain_model
from etcmodel.pretrain import preprocess, task

__all__ = ["measure"]

# Name of a long model, whether its positions are copied, and what is trained.
LIFTED = (
    ("copied positions", True, "all"),
    ("copied positions, which alone are trained", True, "positions"),
    ("random positions", False, "all"),
)
_SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


def measure(options):
    """Runs all stages.

    Args:
        options: `LiftedPretrainingOptions`.
    Returns:
        list of (name of the model, tokens of its windows, dict of updates to the loss on held-out
        text), which is also in `result.json`.
    """
    _write_texts(options)
    _write_vocabulary(options)
    config = _short_config(options)
    short = _train(options, "short", config, options.short_length, options.short_steps)
    rows = [("short model", options.short_length, {options.short_steps: short[-1]["mlm_loss"]})]
    _write_roberta(options, config)
    for name, is_copied, trainable in LIFTED:
        rows.append((name, options.long_length, _lifted(options, name, is_copied, trainable)))
    atomic_files.write_json(options.path("result.json"), rows)
    return rows


def _write_texts(options):
    parts = {"train": [], "heldout": []}
    for path in options.texts:
        text = texts_lib.read(path)
        cut = int(len(text) * (1 - options.heldout_share))
        parts["train"].append(text[:cut])
        parts["heldout"].append(text[cut:])
    for name, texts in parts.items():
        for number, text in enumerate(texts):
            atomic_files.write_text(options.path("texts", f"{name}-{number}.txt"), [text])


def _write_vocabulary(options):
    if os.path.exists(options.path("merges.txt")):
        return
    with extras.needed("text"):
        import tokenizers
    tokenizer = tokenizers.ByteLevelBPETokenizer()
    files = sorted(tf.io.gfile.glob(options.path("texts", "train-*.txt")))
    tokenizer.train(
        files, vocab_size=options.vocab_size, special_tokens=_SPECIAL, show_progress=False
    )
    tokenizer.save_model(options.output_dir)


def _short_config(options):
    """A window that covers the whole input: the model is a RoBERTa."""
    return LongformerConfig(
        vocab_size=options.vocab_size,
        hidden_size=options.hidden_size,
        num_hidden_layers=options.num_layers,
        num_attention_heads=options.hidden_size // lifted_pretraining.HEAD_SIZE,
        intermediate_size=4 * options.hidden_size,
        attention_window=2 * options.short_length,
        max_position_embeddings=options.short_length + 2,
        type_vocab_size=1,
        initializer_range=options.initializer_range,
        layer_norm_eps=1e-5,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )


def _records(options, name, length):
    """The pattern of the records of a set of texts, which are made if they are missing."""
    prefix = options.path("records", f"{name}_{length}")
    if not os.path.exists(f"{prefix}.config.json"):
        made = preprocess.PreprocessOptions(
            input_pattern=options.path("texts", f"{name}-*.txt"),
            output_prefix=prefix,
            vocab_file=options.path("vocab.json"),
            windows="text",
            document_separator="file",
            long_seq_length=length,
            num_shards=1,
            direct_num_workers=1,
        )
        preprocess.run_job(preprocessing_program.make_job(made, *preprocess.load_parts()))
    return f"{prefix}-*.tfrecord"


def _task(options, config, length, trainable="all"):
    return task.PretrainTask(
        task.PretrainConfig(
            encoder_config=config,
            train_data=_records(options, "train", length),
            eval_data=_records(options, "heldout", length),
            vocab_file=options.path("vocab.json"),
            windows="text",
            long_seq_length=length,
            cpc_weight=0.0,
            mlm_weight=1.0,
            trainable=trainable,
        )
    )


def _training_config(options, name, num_examples, batch_size, steps, **changes):
    return training.TrainingConfig(
        output_dir=options.path("runs", name),
        num_train_epochs=programs.epochs(steps, batch_size, num_examples),
        train_batch_size=batch_size,
        eval_batch_size=batch_size,
        random_seed=options.random_seed,
        keep_checkpoint_max=1,
        **changes,
    )


def _train(options, name, config, length, steps):
    """Trains the short model; returns the lines of its evaluations."""
    made = _task(options, config, length)
    batch_size = options.tokens_per_step // length
    training_config = _training_config(
        options,
        name,
        made.num_train_examples,
        batch_size,
        steps,
        learning_rate=options.learning_rate,
        save_checkpoints_steps=max(1, steps // 5),
    )
    training.train(made, training_config)
    return _evaluations(training_config)


def _evaluations(training_config):
    path = os.path.join(training_config.output_dir, "eval_metrics.jsonl")
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def _write_roberta(options, config):
    """The short model in the form of Hugging Face's RoBERTa."""
    model = pretrain_model.make_text_model(config)
    checkpoints.initialize(model, options.path("runs", "short"))
    values = {
        name.replace("longformer.", "roberta."): value
        for name, value in hugging_face.values(pretrain_model.plain_masked_lm(model)).items()
        if "_global." not in name
    }
    of_longformer = ("attention_window", "onnx_export")
    entries = {name: x for name, x in config.to_dict().items() if name not in of_longformer}
    path = options.path("roberta", "config.json")
    atomic_files.write_json(path, {**entries, "model_type": "roberta"})
    path = options.path("roberta", "model.safetensors")
    with atomic_files.new_file(path) as unfinished:
        writing.write_safetensors(values, unfinished, made_by="pt")


def _lifted(options, name, is_copied, trainable):
    """Initializes and trains a long model: dict from updates to the loss on held-out text."""
    # As in the paper the window is as long as the short model's: within it no position is twice.
    window = options.short_length
    model = checkpoints.lift_roberta(
        options.path("roberta"), options.long_length, attention_window=window
    )
    if not is_copied:
        table = model.encoder.position_embeddings.embedding_table
        random = np.random.default_rng(options.random_seed)
        table.assign(random.normal(0, model.encoder.config.initializer_range, table.shape))
    folder = options.path("lifted", name.replace(" ", "_").replace(",", ""))
    checkpoints.save_pretrained(model, folder)
    config = encoders.read_config(os.path.join(folder, encoders.CONFIG_FILE))
    made = _task(options, config, options.long_length, trainable)
    training_config = _training_config(
        options,
        os.path.basename(folder),
        made.num_train_examples,
        options.tokens_per_step // options.long_length,
        options.updates,
        learning_rate=0.3 * options.learning_rate,
        save_checkpoints_steps=max(1, options.updates // options.evaluations),
        init_checkpoint=folder,
    )
    built = made.build_model()
    made.initialize(built, folder)
    start = options.path("runs", f"{os.path.basename(folder)}_start", "ckpt-0")
    tf.train.Checkpoint(model=built).write(start)
    losses = {0: training.evaluate(made, training_config, start)["mlm_loss"]}
    training.train(made, training_config)
    return losses | {x["step"]: x["mlm_loss"] for x in _evaluations(training_config)}
