"""Runs a small ablation study of CPC, the hard g2l mask and structure, like the paper's table 3.

For every variant and seed, pre-trains on the documents of generated WikiHop questions, fine-tunes
on the questions, and evaluates on others; then prints means and standard deviations. All variants
of a seed start from the same weights, which favor no label. Results are kept in `results.jsonl` in
--output_dir, and finished rows are not run again.
"""

import dataclasses
import pathlib
from typing import NamedTuple

from etcmodel.options import Options, option, run_program
from etcmodel.text.word_vocabulary import write_vocabulary
from etcmodel.tools import kept_options, row_results
from etcmodel.tools import run_pretrain_demo as demo
from etcmodel.tools.demos import wikihop as demo_wikihop
from etcmodel.tools.run_demo import read_jsonl

__all__ = ["VARIANTS", "AblationOptions", "Variant", "format_table", "main"]

_OF_EACH_RUN = ("output_dir", "seeds", "variant")  # All others determine all results of a folder.
_LENGTHS = {"long_seq_length": 160, "global_seq_length": 56}
_LOCAL_RADIUS = 16  # Far below the long length: global tokens attend to what is further away.


class Variant(NamedTuple):
    """A row of the table.

    Attributes:
        pretrained: bool. Fine-tune pre-trained weights, not random ones.
        cpc: bool. Pre-train with contrastive predictive coding, not with MLM alone.
        hard_g2l: bool. Global tokens of sentences attend only to the long tokens of their sentence.
            Those of candidates and of the query are exempt, as any sentence may mention them.
        structure: bool. Label the mentions of each candidate as linked to its global token.
    """

    pretrained: bool = True
    cpc: bool = True
    hard_g2l: bool = True
    structure: bool = True


VARIANTS = {
    "ETC": Variant(),
    "flat structure": Variant(structure=False),
    "no CPC": Variant(cpc=False),
    "no hard g2l": Variant(hard_g2l=False),
    "flat structure, no CPC, no hard g2l": Variant(cpc=False, hard_g2l=False, structure=False),
    "no pre-training": Variant(pretrained=False),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class AblationOptions(Options):
    """The variants to compare, and the sizes of the runs."""

    output_dir: str = option("ablations_output", "Directory for data, runs and results.")
    num_train: int = option(3000, "Number of generated training questions.", lower_bound=1)
    num_dev: int = option(1000, "Number of generated evaluation questions.", lower_bound=1)
    num_pretrain_epochs: float = option(4.0, "Number of passes over the documents.")
    num_train_epochs: float = option(3.0, "Number of passes over the training questions.")
    num_hidden_layers: int = option(
        demo.ETC_CONFIG["num_hidden_layers"], "Number of layers of the model.", lower_bound=1
    )
    seeds: tuple[int, ...] = option(
        (0, 1, 2), "Seeds of weights and example order; the data are the same for all."
    )
    variant: tuple = option(
        tuple(VARIANTS),
        "Row of the table to run; may be repeated. Commands with different seeds can use one "
        "--output_dir at the same time, once its data are complete.",
        choices=tuple(VARIANTS),
        is_repeated=True,
    )


def format_table(results):
    """A Markdown table, with a row for each of the `VARIANTS` that has results.

    Args:
        results: list of dict with "variant", "seed", "accuracy".
    """
    return row_results.table(results, VARIANTS)


def _documents_of(questions):
    """The documents of each question as one text, without the question: {"id", "text"}."""
    return [{"id": example["id"], "text": " ".join(example["supports"])} for example in questions]


def _make_data(folder, options):
    """Questions, texts, vocabulary, records and a config for each g2l mask."""
    if (folder / "complete").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    train, dev = demo.make_questions(
        folder,
        dataset="wikihop",
        num_train=options.num_train,
        num_dev=options.num_dev,
        seed=0,
    )
    demo.write_texts(folder, _documents_of(train), _documents_of(dev))
    texts = [text for example in train for text in demo_wikihop.texts(example)]
    vocab_size = write_vocabulary(folder / "vocab.txt", texts, max_size=demo.VOCAB_SIZE)
    for hard_g2l in (True, False):
        changes = {
            "use_hard_g2l_mask": hard_g2l,
            "local_radius": _LOCAL_RADIUS,
            "num_hidden_layers": options.num_hidden_layers,
        }
        demo.write_config(_config_file(folder, hard_g2l), vocab_size, **changes)
    demo.make_windows(folder)
    demo.run(
        "tasks.wikihop.preprocess",
        input_pattern=folder / "wikihop_train.json",
        dev_input_pattern=folder / "wikihop_dev.json",
        output_dir=folder / "records",
        vocab_file=folder / "vocab.txt",
        num_shards=4,
        **_LENGTHS,
    )
    (folder / "complete").touch()


def _config_file(folder, hard_g2l):
    return folder / f"etc_config_{'hard' if hard_g2l else 'soft'}_g2l.json"


def _pretrain(folder, variant, seed, options):
    """Pre-trains, once for all variants that share it; returns the checkpoint."""
    name = f"pretrained_cpc{variant.cpc:d}_hard{variant.hard_g2l:d}_seed{seed}"
    demo.pretrain(
        folder,
        name,
        model_config_file=_config_file(folder, variant.hard_g2l),
        cpc_weight=0.2 if variant.cpc else 0.0,
        initialization="mimetic",
        num_train_epochs=options.num_pretrain_epochs,
        random_seed=seed,
    )
    return folder / name / "best"


def _run_variant(folder, variant, seed, options):
    """Pre-trains, if the variant does, and fine-tunes; returns the accuracy."""
    checkpoint = _pretrain(folder, variant, seed, options) if variant.pretrained else None
    fields = "_".join(f"{field}{value:d}" for field, value in variant._asdict().items())
    name = f"finetuned_{fields}_seed{seed}"
    demo.run(
        "tasks.wikihop.run_finetuning",
        output_dir=folder / name,
        model_config_file=_config_file(folder, variant.hard_g2l),
        vocab_file=folder / "vocab.txt",
        train_data=folder / "records" / "train" / "tf_examples*",
        eval_data=folder / "records" / "dev" / "tf_examples*",
        eval_gold=folder / "wikihop_dev.json",
        **_LENGTHS,
        local_radius=_LOCAL_RADIUS,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        enable_l2g_linking=variant.structure,
        candidate_ignore_hard_g2l=True,
        query_ignore_hard_g2l=True,
        train_batch_size=32,
        eval_batch_size=100,
        learning_rate=3e-3,
        label_smoothing=0.05,
        initialization="mimetic",
        num_train_epochs=options.num_train_epochs,
        random_seed=seed,
        **({"init_checkpoint": checkpoint} if checkpoint else {}),
    )
    return read_jsonl(folder / name / "eval_metrics.jsonl")[-1]["accuracy"]


def main(options):
    """Runs what `AblationOptions` ask for, and prints the table."""
    folder = pathlib.Path(options.output_dir)
    kept_options.keep(folder, options, apart=_OF_EACH_RUN)
    _make_data(folder, options)
    results = row_results.Results(folder / "results.jsonl")
    for seed in options.seeds:
        for name in options.variant:
            results.fill(
                {"variant": name, "seed": seed},
                lambda name=name, seed=seed: {
                    "accuracy": _run_variant(folder, VARIANTS[name], seed, options)
                },
            )
    print(f"\n{format_table(results.all)}")


if __name__ == "__main__":
    run_program(AblationOptions, main)
