"""HotpotQA's questions: see `preprocessing.hotpotqa_files`."""

from etcmodel.preprocessing.hotpotqa_files import (
    HotpotQAExample,
    Paragraph,
    SupportingFact,
    parse_example,
    parse_scores,
    read_examples,
)

__all__ = [
    "HotpotQAExample",
    "Paragraph",
    "SupportingFact",
    "parse_example",
    "parse_scores",
    "read_examples",
]
