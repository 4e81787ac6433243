"""The cases of GMAT, and how results are compared."""

import numpy as np

from tests.reference import cases

TOPIC = "gmat"
KINDS = (
    "attention",
    "pattern",
    "encoder",
    "compression",
    "positions",
    "majority",
    "scoring",
    "mlm_scores",
    "bert_adam",
    "longt5",
    "pegasus_x",
)
# Of which the small copy has these, which are run each time.
SAMPLE = (
    "attention_13",
    "attention_15",
    "attention_33",
    "bert_adam_00",
    "bert_adam_03",
    "compression_06",
    "compression_08",
    "encoder_03",
    "encoder_06",
    "encoder_10",
    "longt5_08",
    "majority_00",
    "majority_03",
    "mlm_scores_03",
    "pattern_06",
    "pegasus_x_05",
    "positions_03",
    "scoring_06",
    "scoring_08",
)


def load(kinds=KINDS, sample=None):
    """The cases of these kinds; with a sample only its cases."""
    found = [case for case in cases.load_cases(TOPIC) if case["kind"] in kinds]
    return [case for case in found if sample is None or case["name"] in sample]


def arrays_of(case):
    return cases.arrays_of(TOPIC, case)


def assert_close(found, wanted, limit=1e-5, rows=None, name=""):
    """Compares with a limit relative to the largest value; `rows` are those of valid tokens."""
    found, wanted = np.asarray(found, np.float64), np.asarray(wanted)
    assert found.shape == wanted.shape, name
    top = np.abs(wanted).max(initial=0)
    if rows is not None:
        found, wanted = found[rows], wanted[rows]
    assert np.abs(found - wanted).max(initial=0) <= limit * top, name
