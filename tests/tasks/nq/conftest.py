"""Pages of Natural Questions made into windows."""

import pytest

from etcmodel.tasks.nq import examples, features
from etcmodel.tasks.nq.config import NqInputConfig
from etcmodel.text import tokenization
from tests.tasks.nq import raw_examples
from tests.tasks.nq.page_windows import SETTINGS


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    path = tmp_path_factory.mktemp("vocab") / "vocab.txt"
    path.write_text("\n".join(raw_examples.vocabulary()) + "\n")
    return tokenization.FullTokenizer(str(path))


@pytest.fixture(scope="module")
def convert(tokenizer):
    """A function of a raw example and settings to a `ConvertedPage`."""
    word_ids = features.make_word_tokenizer(tokenizer)

    def converted(raw, **changes):
        config = NqInputConfig.for_tokenizer(tokenizer, **{**SETTINGS, **changes})
        return features.make_windows(examples.parse_example(raw), config, word_ids)

    return converted
