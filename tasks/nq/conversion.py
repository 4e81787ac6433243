"""Natural Questions' converter: what a preprocessing worker does with one raw line."""

from etcmodel import preprocessing

from . import examples
from .config import NqInputConfig

__all__ = ["ConverterFactory"]


class ConverterFactory(preprocessing.ConverterFactory):
    """Makes the converter; `fields` are arguments of `NqInputConfig`."""

    task = "nq"
    # A page has many windows: this gives shards of similar sizes, as in the release.
    deals_records = True

    def input_config(self, tokenizer):
        return NqInputConfig.for_tokenizer(tokenizer, **self.fields)

    def __call__(self):
        tokenizer = self.tokenizer()
        config = self.input_config(tokenizer)
        word_ids = examples.make_word_tokenizer(tokenizer)  # Caches words across pages.
        return lambda raw: self.convert(raw, config, word_ids)

    def convert(self, raw, config, word_ids):
        converted = examples.make_windows(examples.parse_line(raw), config, word_ids)
        return preprocessing.Converted(
            features=converted.windows,
            counts={
                "windows_without_answer_left_out": converted.num_unknown,
                "candidates_without_global_token": converted.num_left_out,
            },
            lengths={"page_tokens": converted.num_page_tokens},
        )
