"""Made-up passages with numbers, and questions that need them (Gupta and Berant 2020, A.1).

As in the generator of Geva, Gupta and Berant 2020 (arXiv:2004.04487, section 4.2), sentences fill
in templates of a container, a verb, numbers, attributes and entities; a world keeps how much each
container has; questions are on its last state, and those remain whose answer is a number that the
passage does not have. Templates, words and code are our own.
"""

import re
import string

from etcmodel.tools.demos import numbers_world, splits

__all__ = ["make_examples", "model_config", "texts", "vocabulary"]

SENTENCES, LARGEST = 5, 10_000
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "@", "\\")


def make_examples(*, split, num_examples, seed, sentences=SENTENCES, largest=LARGEST):
    """Questions of a split: see `splits.example_maker`.

    Args:
        split, num_examples, seed: as there.
        sentences: int. Of a passage.
        largest: int, at least 2. Numbers are below it.
    Returns:
        list of dict with `id`, `question`, `passage`, `answer` and `kind`: "difference",
        "complement", "total" or "sum".
    """

    def make_example(rng, split, index):
        while True:
            world = numbers_world.World(rng, largest)
            passage = " ".join(world.sentence() for _ in range(sentences))
            question = world.question()
            if question is not None and question.answer not in world.numbers:
                return {
                    "id": f"{split}-{index}",
                    "question": question.text,
                    "passage": passage,
                    "answer": str(question.answer),
                    "kind": question.kind,
                }

    maker = splits.example_maker(make_example)
    return maker(split=split, num_examples=num_examples, seed=seed)


def texts(example):
    """The texts of an example, of which its vocabulary must have all pieces: list of str."""
    return [example["question"], example["passage"], example["answer"]]


def vocabulary(*, sentences=SENTENCES, largest=LARGEST):
    """The pieces: list of str. Special ones, digits, letters, then all words there are."""
    del sentences, largest
    characters = string.digits + string.ascii_lowercase
    words = set(re.findall(r"\w+", " ".join(numbers_world.all_texts()).lower()))
    inner = [f"##{x}" for x in characters]
    return [*_SPECIAL, *".,?", *characters, *inner, *sorted(words - set(characters))]


def model_config(*, sentences=SENTENCES, largest=LARGEST):
    """A GMAT for a CPU, with the chunks of two to a text, and the memory, of the paper's: dict."""
    del sentences, largest
    return {
        "model_type": "gmat",
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 256,
        "chunk_size": 70,
        "num_memory_tokens": 30,
        "num_position_quotients": 0,
        # BERT's are 12 times wider: a narrow layer needs larger weights to begin with.
        "initializer_range": 0.1,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    }
