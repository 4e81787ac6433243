"""OpenKP's converter: what a preprocessing worker does with one raw line."""

import dataclasses
import json

from etcmodel import preprocessing

from . import examples, layout
from .config import FORMAT_VERSION, OpenKpInputConfig

__all__ = ["ConverterFactory"]


class ConverterFactory(preprocessing.ConverterFactory):
    """Makes the converter; `fields` are arguments of `OpenKpInputConfig`."""

    task = "openkp"
    format_version = FORMAT_VERSION
    line_files = ("text_examples", "parse_failures")  # Named as in the release.

    def input_config(self, tokenizer):
        config = OpenKpInputConfig(**self.fields)
        config.check_vocabulary(tokenizer)
        return config

    def __call__(self):
        tokenizer = self.tokenizer()
        config = self.input_config(tokenizer)
        tokenize_word = layout.word_tokenizer(tokenizer)
        return lambda raw: self.convert(raw, config, tokenize_word)

    def convert(self, raw, config, tokenize_word):
        # Text that is not UTF-8 cannot be written.
        line = raw["line"].strip().replace("\n", " ").encode("utf-8", "replace").decode("utf-8")
        try:
            example = examples.parse_line(raw)
        except ValueError as error:
            return _malformed(line, str(error))
        if config.is_training is None:  # As in the release: pages may have no labels.
            is_training = example.key_phrases is not None
            config = dataclasses.replace(config, is_training=is_training)
        try:
            converted = examples.make_features(example, config, tokenize_word)
        except ValueError as error:
            return _malformed(line, f"{raw['place']}: {error}")
        return preprocessing.Converted.of_one(
            converted,
            drop_reasons=examples.DROP_REASONS,
            counts={
                "examples_truncated": int(converted.num_words_left_out > 0),
                "key_phrases_not_found": converted.num_phrases_not_found,
            },
            lines={"parse_failures": line}
            if converted.features is None
            else {"text_examples": _without_vdom(raw["line"])},
        )


def _malformed(line, problem):
    return preprocessing.Converted(features=[], problem=problem, lines={"parse_failures": line})


def _without_vdom(line):
    """The parts of a page that decoding and evaluation need."""
    page = json.loads(line)
    kept = {name: page[name] for name in ("url", "text", "KeyPhrases") if name in page}
    return json.dumps(kept)
