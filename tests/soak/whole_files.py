"""The files that are damaged, and whether what was made of them is what the whole ones give.

They are those of a run of the first edition (`tests/fixtures/first_edition`), and some that are
made beside them.
"""

import gzip
import json
import pathlib
import shutil

import numpy as np
import safetensors.numpy
import sentencepiece
import yaml

from etcmodel.checkpoints import sources

__all__ = ["EVALUATION", "PIECES", "make_folder", "same_answers", "same_metrics", "same_weights"]

FIXTURES = pathlib.Path(__file__).parents[1] / "fixtures" / "first_edition"
PIECES = "pieces.model"
EVALUATION = {
    "eval_data": "hotpotqa/records/dev-*.tfrecord",
    "eval_gold": "hotpotqa/hotpotqa_dev.json",
    "vocab_file": "hotpotqa/vocab.txt",
    "long_seq_length": 320,
    "global_seq_length": 96,
}


def make_folder(folder):
    """The files of all subjects."""
    shutil.copytree(FIXTURES, folder)
    for packed in folder.glob("*/export/*/*.gz"):
        packed.with_suffix("").write_bytes(gzip.decompress(packed.read_bytes()))
        packed.unlink()
    text = (folder / "hotpotqa" / "hotpotqa_dev.json").read_text(encoding="utf-8")
    documents = [{"id": str(i), "text": x["question"]} for i, x in enumerate(json.loads(text))]
    lines = "".join(f"{json.dumps(document)}\n" for document in documents)
    (folder / "texts.jsonl").write_text(lines, encoding="utf-8")
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter(text.splitlines()[:3]),
        model_prefix=str(folder / PIECES.removesuffix(".model")),
        model_type="char",
        vocab_size=200,
        hard_vocab_limit=False,
        minloglevel=2,
        user_defined_symbols=["[CLS]", "[SEP]", "[MASK]"],
    )
    options = {"run_mode": "evaluate", "output_dir": "hotpotqa/run", "random_seed": 0}
    (folder / "options.yaml").write_text(yaml.safe_dump({**EVALUATION, **options}))


def same_weights(folder, output):
    """Whether a converted checkpoint holds the weights of the fixtures bit by bit."""
    del output
    expected = safetensors.numpy.load_file(
        FIXTURES / "checkpoints" / "safetensors" / "model.safetensors"
    )
    made = sources.open_source(str(folder / "converted"))
    return set(made.shapes) == set(expected) and all(
        np.array_equal(made.read(name), value) for name, value in expected.items()
    )


def same_metrics(folder, output):
    """Whether the metrics are those of the run, where the metrics of the first edition are."""
    del folder
    expected = json.loads((FIXTURES / "hotpotqa" / "expected_metrics.json").read_text())
    metrics = json.loads(output.splitlines()[-1])
    return all(abs(metrics[name] - value) < 1e-6 for name, value in expected.items())


def same_answers(folder, output):
    """Whether the answers are those of the export."""
    del output
    expected = (FIXTURES / "hotpotqa" / "expected_predictions.json").read_text()
    return json.loads((folder / "answers.json").read_text()) == json.loads(expected)
