"""HotpotQA's programs and their arguments, over a folder of examples."""

import json
import pathlib

from etcmodel import preprocessing
from etcmodel.preprocessing import program
from etcmodel.tasks.hotpotqa import preprocess
from tests.tasks import programs

SHARED = pathlib.Path(__file__).parents[4] / "shared"


REAL_EXAMPLES = SHARED / "real" / "hotpotqa_10.json"


REAL_VOCAB = SHARED / "reference" / "vocab" / "bert_uncased_vocab.txt"


LENGTHS = {"generated": (320, 96), "real": (2048, 256)}


def run_here(**arguments):
    """Runs run_finetuning in this process."""
    programs.fine_tune("hotpotqa", **arguments)


def preprocess_here(folder, source, vocab, lengths, split, **options):
    options = preprocess.PreprocessOptions(
        input_pattern=str(source),
        output_prefix=str(folder / split),
        vocab_file=str(vocab),
        long_seq_length=lengths[0],
        global_seq_length=lengths[1],
        num_shards=1,
        is_training=split == "train",
        strict=True,
        **options,
    )
    preprocessing.run(program.make_job(options, *preprocess.load_parts()))


def write_config(folder, vocab):
    config = {
        "vocab_size": len(pathlib.Path(vocab).read_text(encoding="utf-8").splitlines()),
        "hidden_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 16,
        "local_radius": 8,
        "relative_pos_max_distance": 4,
        "relative_vocab_size": 16,
    }
    (folder / "etc_config.json").write_text(json.dumps(config))


def model_flags(folder, vocab, lengths):
    return {
        "etc_config_file": folder / "etc_config.json",
        "vocab_file": vocab,
        "max_long_seq_length": lengths[0],
        "max_global_seq_length": lengths[1],
        "output_dir": folder / "model",
    }


def train_flags(folder):
    return {
        "run_mode": "train",
        "train_tf_examples_filepattern": folder / "train-*.tfrecord",
        "train_batch_size": 4,
        "num_train_epochs": 1,
    }


def eval_flags(folder, dev):
    return {
        "predict_tf_examples_filepattern": folder / "dev-*.tfrecord",
        "predict_gold_json_file": dev,
    }


def predict_flags(folder):
    return {
        "run_mode": "predict",
        "export_dir": folder / "model" / "export",
        "predict_input_json_file": folder / "questions.json",
        "predictions_file": folder / "predictions.json",
    }


def write_questions(folder, dev):
    """The examples without what is not known when a question is asked, and two of no use."""
    hidden = ("answer", "supporting_facts", "type", "level")
    gold = json.loads(pathlib.Path(dev).read_text(encoding="utf-8"))
    questions = [{k: v for k, v in example.items() if k not in hidden} for example in gold]
    too_long = {**questions[0], "_id": "long", "question": "who " * LENGTHS["generated"][0]}
    raws = [{"_id": "bare"}, *questions, too_long]
    (folder / "questions.json").write_text(json.dumps(raws))
    return questions


def write_gold(folder, dev):
    """The examples with a malformed one between them, which preprocessing skips as well."""
    gold = json.loads(pathlib.Path(dev).read_text(encoding="utf-8"))
    gold.insert(1, {**gold[0], "_id": "bad", "supporting_facts": [["a title", "first"]]})
    (folder / "gold.json").write_text(json.dumps(gold))
    return folder / "gold.json"
