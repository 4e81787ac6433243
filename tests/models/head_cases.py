"""A case for each head: how it is made, and a toy that it can learn."""

import numpy as np

from etcmodel.models import heads, modeling

LENGTH = 12
MARK, END, CANDIDATE = 3, 4, 2
FIRST_WORD = 6  # Ids from here on are words.
NUM_EXAMPLES = 192


def config(**changes):
    entries = {
        "vocab_size": 30,
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "local_radius": 4,
        "intermediate_size": 32,
        "relative_pos_max_distance": 3,
        "relative_vocab_size": 12,
        "global_block_length": 4,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    }
    return modeling.EtcConfig(**{**entries, **changes})


def texts(rng, count):
    """Random words with MARK somewhere and END two places further; and the places of MARK."""
    ids = rng.integers(FIRST_WORD, 30, [count, LENGTH])
    places = rng.integers(1, 9, count)
    ids[np.arange(count), places] = MARK
    ids[np.arange(count), places + 2] = END
    return ids, places


def sequences(rng, count):
    ids = rng.integers(FIRST_WORD, 30, [count, LENGTH])
    labels = rng.integers(0, 2, count)
    ids[np.arange(count), rng.integers(0, LENGTH, count)] = MARK + labels
    return {"token_ids": ids}, labels


def tokens(rng, count):
    ids = rng.integers(FIRST_WORD, 30, [count, LENGTH])
    return {"token_ids": ids}, (ids > 17).astype(int)


def questions(rng, count):
    ids, places = texts(rng, count)
    evidence = (np.arange(LENGTH // 4) == places[:, np.newaxis] // 4).astype(int)
    kinds = rng.integers(0, 4, count)
    ids[:, -1] = FIRST_WORD + kinds  # Behind END at the farthest.
    labels = {"start": places, "end": places + 2, "type": kinds, "evidence": evidence}
    return {"token_ids": ids}, labels


def sentences(rng, count):
    features, labels = questions(rng, count)
    return features, labels["evidence"]


def candidates(rng, count):
    ids, places = texts(rng, count)
    global_ids = np.full([count, LENGTH // 4], CANDIDATE)
    links = np.tile(np.arange(LENGTH) // 4, [count, 1])
    return {"token_ids": ids, "global_token_ids": global_ids, "links": links}, places // 4


def choices(rng, count):
    ids = rng.integers(FIRST_WORD, 30, [count, 3, 6])
    labels = rng.integers(0, 3, count)
    ids[np.arange(count), labels, 2] = MARK
    return {"token_ids": ids}, labels


def phrases(rng, count):
    ids, places = texts(rng, count)
    return {"token_ids": ids}, np.stack([places, np.full(count, 3)], -1)[:, np.newaxis]


def masked(rng, count):
    """One word all over, of which one place is masked."""
    ids = np.repeat(rng.integers(FIRST_WORD, FIRST_WORD + 4, [count, 1]), LENGTH, axis=1)
    labels, positions = ids[:, 5:6].copy(), np.full([count, 1], 5)
    ids[:, 5] = MARK
    return {"token_ids": ids, "masked_positions": positions}, labels


# Name: (class, settings, data, the main metric, what guessing gives).
CASES = {
    "sequence": (heads.EtcForSequenceClassification, {"num_labels": 2}, sequences, "accuracy", 0.6),
    "token": (heads.EtcForTokenClassification, {"num_labels": 2}, tokens, "accuracy", 0.6),
    "question": (heads.EtcForQuestionAnswering, {}, questions, "start_accuracy", 0.25),
    "sentence": (heads.EtcForSentenceSelection, {}, sentences, "accuracy", 0.7),
    "candidates": (
        heads.EtcForMultipleChoice,
        {"candidate_token_id": CANDIDATE},
        candidates,
        "accuracy",
        0.6,
    ),
    "choices": (heads.EtcForMultipleChoice, {}, choices, "accuracy", 0.5),
    "phrases": (
        heads.EtcForKeyphraseExtraction,
        {"max_words": 3},
        phrases,
        "precision_at_1",
        0.25,
    ),
    "masked": (heads.EtcForMaskedLM, {}, masked, "accuracy", 0.4),
}


def make(name, **changes):
    """A new model of a case."""
    head_class, settings, *_ = CASES[name]
    return head_class(config(**changes), **settings)


def data(name, count=NUM_EXAMPLES, seed=0):
    """(features, labels) of a case."""
    return CASES[name][2](np.random.default_rng(seed), count)
