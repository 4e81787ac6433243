"""Small tokenizers for the tests of WikiHop."""

import sentencepiece

from etcmodel.text import tokenization
from etcmodel.text.word_vocabulary import build_vocabulary
from tests import vocabularies
from tests.tasks.wikihop.raw_examples import raw_example

_RAW = raw_example()
_TEXTS = [_RAW["query"], *_RAW["candidates"], *_RAW["supports"]]


def wordpiece(folder, more=()):
    """A tokenizer that knows the words of `raw_example` whole, all letters, and `more`."""
    return vocabularies.tokenizer(folder, [*build_vocabulary(_TEXTS), "san", *more])


fixture = vocabularies.fixture((), wordpiece)


def sentence_pieces(folder):
    """A tokenizer of single characters."""
    prefix = str(folder / "characters")
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter(_TEXTS),
        model_prefix=prefix,
        model_type="char",
        vocab_size=100,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return tokenization.FullTokenizer(None, spm_model_file=f"{prefix}.model")
