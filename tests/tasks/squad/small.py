"""Invented questions and settings for the tests of SQuAD."""

from etcmodel.tasks.squad import config
from tests import vocabularies

WORDS = "[PAD] [UNK] [CLS] [SEP] . , who was it the red green king of mud ##dy"


def tokenizer(folder):
    return vocabularies.tokenizer(folder, WORDS.split())


def input_config(**fields):
    lengths = {"long_seq_length": 16, "global_seq_length": 12, "doc_stride": 4}
    return config.SquadInputConfig(**{**lengths, **fields})


def raw_question(context="It was the red king.", *answers, **fields):
    """A question in the flat layout; each answer is at its first place in the context."""
    found = [{"text": text, "answer_start": context.index(text)} for text in answers]
    return {"id": "q", "question": "who was it", "context": context, "answers": found, **fields}
