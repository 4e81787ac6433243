"""Outputs for windows by hand, and what is decoded from them."""

import numpy as np

from etcmodel.tasks.nq import config, metrics
from etcmodel.tasks.nq.config import ANSWER_TYPES

TOKEN_POS = [-1, -1, -1, *range(10, 40), -1]  # Word 10 + i is the token 3 + i.


def window(example_id=1, answer_type="short", null=0.0, **positions):
    """An output: for each kind of position, a dict of word to logit."""
    types = np.zeros(5, np.float32)
    types[ANSWER_TYPES[answer_type]] = 1.0
    output = {
        "unique_ids": np.array(example_id, np.int64),
        "token_pos": np.array(TOKEN_POS),
        "answer_type_logits": types,
    }
    for name in metrics.POSITIONS:
        logits = positions.get(name, {})
        output[f"{name}_pred"] = np.array([0, *(word - 7 for word in logits)])
        output[f"{name}_logit"] = np.array([null, *logits.values()], np.float32)
        output[f"{name}_logit0"] = np.array(null, np.float32)
    return output


ANSWER = {"la_start": {11: 3.0}, "la_end": {30: 3.0}, "sa_start": {14: 2.0}, "sa_end": {15: 2.0}}


def decoded(*windows, **options):
    (prediction,) = metrics.generate_predictions(windows, config.DecodingConfig(**options))[
        "predictions"
    ]
    return prediction


def words(answer):
    return answer["start_token"], answer["end_token"]


def short_words(prediction):
    return [words(answer) for answer in prediction["short_answers"]]
