"""HotpotQA's part of the preprocessing: what a worker does to one raw example."""

import dataclasses
import hashlib
import pathlib

from etcmodel import preprocessing
from etcmodel.models import tokenization

from . import examples
from .config import HotpotQAInputConfig

__all__ = ["ConverterFactory"]

FORMAT_VERSION = 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class ConverterFactory:
    """Makes the converter of a `preprocessing.Job`; small enough to be sent to each worker.

    Attributes:
        vocab_file, spm_model_file: str. The latter wins; '' for none.
        do_lower_case: bool. For word pieces.
        fields: dict. Arguments of `HotpotQAInputConfig`.
    """

    vocab_file: str
    spm_model_file: str
    do_lower_case: bool
    fields: dict

    def __call__(self):
        tokenizer = self.tokenizer()
        config = HotpotQAInputConfig.for_tokenizer(tokenizer, **self.fields)
        return lambda raw: _convert(raw, config, tokenizer)

    def tokenizer(self):
        """The `FullTokenizer` of the files."""
        return tokenization.FullTokenizer(
            self.vocab_file, self.do_lower_case, spm_model_file=self.spm_model_file or None
        )

    def settings(self):
        """dict: what a program that reads the records must agree with.

        Raises:
            ValueError: if the files or the fields do not fit.
        """
        tokenizer = self.tokenizer()
        config = HotpotQAInputConfig.for_tokenizer(tokenizer, **self.fields)
        return {
            "task": "hotpotqa",
            "format_version": FORMAT_VERSION,
            **dataclasses.asdict(config),
            "tokenizer": "sentencepiece" if tokenizer.sp_model else "wordpiece",
            "do_lower_case": self.do_lower_case and not tokenizer.sp_model,
            "vocab_size": len(tokenizer.vocab),
            "vocab_sha256": _sha256(tokenizer.source_file),
        }


def _sha256(path):
    if "://" in path:
        import tensorflow as tf

        with tf.io.gfile.GFile(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def _convert(raw, config, tokenizer):
    converted = examples.make_features(examples.parse_example(raw), config, tokenizer)
    counts = {f"dropped_{reason}": 0 for reason in examples.DROP_REASONS}
    counts["examples_truncated"] = int(converted.num_left_out > 0)
    counts["unmatched_supporting_facts"] = converted.num_unmatched_facts
    if converted.drop_reason:
        counts[f"dropped_{converted.drop_reason}"] += 1
    return preprocessing.Converted(
        features=[] if converted.features is None else [converted.features],
        counts=counts,
        lengths={
            "long_tokens": converted.num_long_tokens,
            "global_tokens": converted.num_global_tokens,
        },
    )
