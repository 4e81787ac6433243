"""What CPC, the hard g2l mask and structure are worth: a small table like the paper's table 3.

Pre-trains on the paragraphs of generated two-hop questions, fine-tunes on the questions, and
measures on others, for every variant and seed; then prints means and standard deviations. Results
are kept in `results.jsonl` of --output_dir, and what is there is not run again.
"""

import json
import pathlib
import statistics
from typing import NamedTuple

from absl import app, flags

from etcmodel.tools import run_pretrain_demo as demo
from etcmodel.tools.run_demo import read_jsonl

__all__ = ["FIGURES", "VARIANTS", "Variant", "format_table"]

FIGURES = {"f1": "answer F1", "sp_f1": "supporting facts F1", "joint_f1": "joint F1"}


class Variant(NamedTuple):
    """A row of the table.

    Attributes:
        cpc: bool. Pre-train with contrastive predictive coding, not with MLM alone.
        hard_g2l: bool. Global tokens see only the long tokens of their sentence or paragraph.
        structure: bool. Fine-tune with masks and labels of paragraphs, not on a flat sequence.
    """

    cpc: bool = True
    hard_g2l: bool = True
    structure: bool = True


VARIANTS = {
    "ETC": Variant(),
    "flat structure": Variant(structure=False),
    "no CPC": Variant(cpc=False),
    "no hard g2l": Variant(hard_g2l=False),
    "flat structure, no CPC, no hard g2l": Variant(cpc=False, hard_g2l=False, structure=False),
}


def define_flags():
    """Defines this program's flags."""
    flags.DEFINE_string("output_dir", "ablations_output", "Directory of data, runs and results.")
    flags.DEFINE_integer("num_train", 5000, "Generated training questions.", lower_bound=1)
    flags.DEFINE_integer("num_dev", 500, "Generated questions to measure on.", lower_bound=1)
    flags.DEFINE_float("num_pretrain_epochs", 3.0, "Passes over the paragraphs.")
    flags.DEFINE_float("num_train_epochs", 2.5, "Passes over the training questions.")
    flags.DEFINE_list("seeds", ["0", "1", "2"], "Seeds of weights and order; the data stay.")
    flags.DEFINE_multi_enum(
        "variant",
        list(VARIANTS),
        list(VARIANTS),
        "A row to run; may be repeated. Runs of different seeds, or of rows that differ in CPC or "
        "in the g2l mask, can share one --output_dir at the same time once its data are complete.",
    )


def format_table(results):
    """A Markdown table of means and standard deviations over the seeds.

    Args:
        results: list of dict with "variant", "seed" and the names in `FIGURES`.
    Returns:
        str. Rows in the order of `VARIANTS`; variants without a result are left out.
    """
    lines = [
        "| " + " | ".join(["configuration", *FIGURES.values(), "seeds"]) + " |",
        "|---" * (len(FIGURES) + 2) + "|",
    ]
    for name in VARIANTS:
        runs = [result for result in results if result["variant"] == name]
        if not runs:
            continue
        cells = [_mean_and_spread([run[figure] for run in runs]) for figure in FIGURES]
        lines.append("| " + " | ".join([name, *cells, str(len(runs))]) + " |")
    return "\n".join(lines)


def _mean_and_spread(values):
    if len(values) == 1:
        return f"{values[0]:.3f}"
    return f"{statistics.mean(values):.3f} ± {statistics.stdev(values):.3f}"


def _make_data(folder):
    """Questions, texts, vocabulary, records and a config for each g2l mask."""
    if (folder / "complete").exists():
        return
    for name in ("windows", "records"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    train, dev = demo.make_questions(
        folder, num_train=flags.FLAGS.num_train, num_dev=flags.FLAGS.num_dev, seed=0
    )
    documents = demo.paragraphs_of(train)
    demo.write_texts(folder, documents, demo.paragraphs_of(dev))
    vocab_size = demo.write_vocab(folder, documents)
    for hard_g2l in (True, False):
        path = _config_file(folder, hard_g2l)
        demo.write_config(path, vocab_size, use_hard_g2l_mask=hard_g2l)
    demo.make_records(folder)
    (folder / "complete").touch()


def _config_file(folder, hard_g2l):
    return folder / f"etc_config_{'hard' if hard_g2l else 'soft'}_g2l.json"


def _run_variant(folder, name, seed):
    """Pre-trains (once for all variants that agree in it) and fine-tunes; dict of figures."""
    variant = VARIANTS[name]
    config_file = _config_file(folder, variant.hard_g2l)
    pretrained = f"pretrained_cpc{variant.cpc:d}_hard{variant.hard_g2l:d}_seed{seed}"
    demo.pretrain(
        folder,
        pretrained,
        etc_config_file=config_file,
        cpc_weight=0.2 if variant.cpc else 0.0,
        num_train_epochs=flags.FLAGS.num_pretrain_epochs,
        random_seed=seed,
    )
    evaluations = demo.finetune(
        folder,
        f"finetuned_cpc{variant.cpc:d}_hard{variant.hard_g2l:d}"
        f"_structure{variant.structure:d}_seed{seed}",
        etc_config_file=config_file,
        init_checkpoint=folder / pretrained / "best",
        flat_sequence=not variant.structure,
        num_train_epochs=flags.FLAGS.num_train_epochs,
        random_seed=seed,
    )
    return {figure: evaluations[-1][figure] for figure in FIGURES}


def main(unused_argv):
    folder = pathlib.Path(flags.FLAGS.output_dir)
    _make_data(folder)
    path = folder / "results.jsonl"
    results = read_jsonl(path) if path.exists() else []
    done = {(result["variant"], result["seed"]) for result in results}
    for seed in map(int, flags.FLAGS.seeds):
        for name in flags.FLAGS.variant:
            if (name, seed) in done:
                continue
            results.append({"variant": name, "seed": seed, **_run_variant(folder, name, seed)})
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(results[-1]) + "\n")
    print(f"\n{format_table(results)}")


if __name__ == "__main__":
    define_flags()
    app.run(main)
