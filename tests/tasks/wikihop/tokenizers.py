"""Small tokenizers for the tests of WikiHop."""

import sentencepiece

from etcmodel.text import tokenization
from etcmodel.text.word_vocabulary import build_vocabulary
from tests.tasks.wikihop.raw_examples import raw_example


def wordpiece(folder):
    """A tokenizer that knows the words of `raw_example` whole, and all letters."""
    raw = raw_example()
    vocab = build_vocabulary([raw["query"], *raw["candidates"], *raw["supports"]])
    path = folder / "vocab.txt"
    path.write_text("\n".join([*vocab, "san"]) + "\n", encoding="utf-8")
    return tokenization.FullTokenizer(str(path))


def sentence_pieces(folder):
    """A tokenizer of single characters."""
    raw = raw_example()
    texts = [raw["query"], *raw["candidates"], *raw["supports"]]
    prefix = str(folder / "characters")
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter(texts),
        model_prefix=prefix,
        model_type="char",
        vocab_size=100,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return tokenization.FullTokenizer(None, spm_model_file=f"{prefix}.model")
