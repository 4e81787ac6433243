"""Pages of Natural Questions made into windows."""

import pytest

from etcmodel.tasks.nq import examples, features
from etcmodel.tasks.nq.config import NqInputConfig
from tests import vocabularies
from tests.tasks.nq import raw_examples
from tests.tasks.nq.page_windows import SETTINGS

tokenizer = vocabularies.fixture(raw_examples.vocabulary())


@pytest.fixture(scope="module")
def convert(tokenizer):
    """A function of a raw example and settings to a `ConvertedPage`."""
    word_ids = features.make_word_tokenizer(tokenizer)

    def converted(raw, **changes):
        config = NqInputConfig.for_tokenizer(tokenizer, **{**SETTINGS, **changes})
        return features.make_windows(examples.parse_example(raw), config, word_ids)

    return converted
