"""Random sequences for majority tagging (Gupta and Berant 2020, section 3.1).

Tokens are independent and uniform from 1 to twice the number of pairs; each is tagged with the more
frequent one of its pair.
"""

from etcmodel.tasks.majority_tagging import examples
from etcmodel.tools.demos import made_up

__all__ = ["make_examples", "model_config", "texts", "vocabulary"]

LENGTH, PAIRS = 64, 1


def _make_example(rng, split, index, *, length=LENGTH, pairs=PAIRS):
    """A dict with `id`, `tokens` and `tags`, of so many tokens and pairs."""
    tokens = rng.choices(range(1, 2 * pairs + 1), k=length)
    tags = examples.majority_tags(tokens).tolist()
    return {"id": f"{split}-{index}", "tokens": tokens, "tags": tags}


make_examples = made_up.example_maker(_make_example)


def texts(example):
    """The text of an example, of which its vocabulary must have all pieces: list of str."""
    return [" ".join(map(str, example["tokens"]))]


def vocabulary(*, length=LENGTH, pairs=PAIRS):
    """The pieces: list of str. The id of a number is the number."""
    del length
    return ["[PAD]", *map(str, range(1, 2 * pairs + 1)), "[UNK]"]


def model_config(*, length=LENGTH, pairs=PAIRS):
    """A GMAT that learns it in a minute or two on a CPU: dict, without `vocab_size`.

    A token attends to at most an eighth of the sequence directly; the rest is in the memory.
    """
    del pairs
    return {
        "model_type": "gmat",
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 256,
        "chunk_size": max(1, min(length // 8, 32)),
        "num_memory_tokens": 8,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    }
