"""Invented questions, documents and options for the tests of TriviaQA."""

import json

from etcmodel.preprocessing import program
from etcmodel.tasks.triviaqa import config, preprocess
from etcmodel.text import tokenization
from etcmodel.tools import make_demo_data
from tests import vocabularies

VOCAB = "[PAD] [unused0] [UNK] [CLS] [SEP] . , who was it a the red green king of mud ##dy ' - it's"
VOCAB = VOCAB.split()


def write_vocab(folder):
    return vocabularies.write(folder, VOCAB)


def tokenizer(folder):
    return tokenization.FullTokenizer(write_vocab(folder))


def input_config(**fields):
    lengths = {"long_seq_length": 16, "global_seq_length": 8}
    return config.TriviaQaInputConfig(**{**lengths, **fields})


def raw_question(number=1, answers=("red king",), web=(), wikipedia=(), **fields):
    """A question in the data set's layout; documents are names of files."""
    return {
        "Answer": {"NormalizedAliases": list(answers), "Value": answers[0]},
        "EntityPages": [{"Filename": name, "Title": "T"} for name in wikipedia],
        "SearchResults": [{"Filename": name, "Rank": 1} for name in web],
        "Question": "who was it",
        "QuestionId": f"q_{number}",
        **fields,
    }


def write_questions(path, questions):
    path.write_text(
        json.dumps({"Version": 1.0, "Data": questions, "Domain": "Web"}, indent=1), encoding="utf-8"
    )
    return str(path)


def write_demo_records(folder, num_train, num_dev, **options):
    """Writes demo data and their records to a folder; returns the paths of `make_demo_data`."""
    paths = make_demo_data.make_demo_data(
        dataset="triviaqa", output_dir=str(folder), num_train=num_train, num_dev=num_dev, seed=0
    )
    for name in ("train", "dev"):
        made = preprocess.PreprocessOptions(
            input_pattern=paths[name],
            output_prefix=str(folder / name),
            evidence_dir=str(folder / "evidence"),
            vocab_file=paths["vocab"],
            is_training=name == "train",
            num_shards=1,
            long_seq_length=64,
            stride=20,
            **options,
        )
        list(program.run(made, preprocess.load_parts))
    return paths
