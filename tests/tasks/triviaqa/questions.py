"""Invented questions, documents and options for the tests of TriviaQA."""

import json

from etcmodel.tasks.triviaqa import config
from etcmodel.text import tokenization

VOCAB = "[PAD] [unused0] [UNK] [CLS] [SEP] . , who was it a the red green king of mud ##dy ' - it's"
VOCAB = VOCAB.split()

__all__ = ["VOCAB", "input_config", "raw_question", "tokenizer", "write_questions", "write_vocab"]


def write_vocab(folder):
    path = folder / "vocab.txt"
    path.write_text("\n".join(VOCAB), encoding="utf-8")
    return str(path)


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
