"""Which cases of LongT5 and PEGASUS-X are run, and how."""

from tests.reference import seq2seq_cases, ways

TOPIC = "t5"
# Of which the small copy has these, which are run each time.
SAMPLE = (
    "longt5/b_generate/beam4_return3",
    "longt5/b_generate/greedy_ngram2",
    "longt5/d_lm/holes",
    "longt5/d_lm/left_padding",
    "longt5/d_lm/teacher_forcing",
    "pegasus_x/a_generate/beam4_return3",
    "pegasus_x/a_generate/greedy_ngram2",
    "pegasus_x/b_lm/decoder_mask",
    "pegasus_x/c_lm/teacher_forcing",
)
# And these are run in graphs, too, and compiled, among the slow tests.
TRACED = (
    "longt5/b_generate/greedy_ngram2",
    "longt5/d_lm/holes",
    "pegasus_x/b_lm/decoder_mask",
)


def check(case, way=ways.EAGER):
    """Runs a case, and compares all that it has."""
    seq2seq_cases.check(TOPIC, case, way=way)
