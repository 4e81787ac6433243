"""Which cases of LED are run, and how."""

from tests.reference import cases, seq2seq_cases, ways

TOPIC = "longformer"
# Of which the small copy has these, which are run each time; those of lifting elsewhere, too.
SAMPLE = (
    "led/a_generate/beam4_lp1_early",
    "led/a_generate/greedy_ngram2",
    "led/a_generate/greedy_no_global",
    "led/b_lm/decoder_mask",
    "led/b_lm/global_uneven",
    "led/b_lm/masked_inside",
    "led/b_lm/no_masks",
    "led/b_lm/pad_label_counts",
    "led/b_qa/qa",
    "lift/led/long",
    "lift/led/same_as_source",
)
# And these are run in graphs, too, and compiled, among the slow tests.
TRACED = ("led/b_lm/global_uneven", "led/b_qa/qa")


def load_cases():
    """All cases of folders of LED's: teacher forcing, question answering, generation, lifting."""
    found = cases.load_cases(TOPIC)
    return [case for case in found if case["kind"].startswith(("led/", "lift/led"))]


def check(case, way=ways.EAGER):
    """Runs a case, and compares all that it has."""
    seq2seq_cases.check(TOPIC, case, lookups=("led.shared.weight",), way=way)
