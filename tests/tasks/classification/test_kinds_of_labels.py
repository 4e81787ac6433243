"""Records whose labels are of another kind than the model's are refused by that name."""

import pytest

from etcmodel import finetuning
from etcmodel.tasks.classification.config import MULTI_LABEL, REGRESSION, SINGLE_LABEL
from etcmodel.tasks.classification.task import RecordConfig
from tests.tasks.classification.raw_texts import VOCAB
from tests.tasks.classification.test_preprocess import lines, run

LABELS = ("a", "b", "c")
MADE = {SINGLE_LABEL: "a", MULTI_LABEL: ["a", "c"], REGRESSION: 0.5}
TOLD = {
    SINGLE_LABEL: "one label each",
    MULTI_LABEL: "any number of labels each",
    REGRESSION: "a number each",
}


def check(tmp_path, made, learned, labels=LABELS):
    """Checks records of one kind for a model of another."""
    given = {} if made == REGRESSION else {"labels": LABELS}
    content = lines({"text": "it", "label": MADE[made]})
    run(tmp_path, content, problem_type=made, **given)
    lengths = {"long_seq_length": 12, "global_seq_length": 4, "vocab_size": len(VOCAB)}
    labels = () if learned == REGRESSION else labels
    expected = RecordConfig(**lengths, problem_type=learned, labels=labels)
    pattern = str(tmp_path / "records" / "train-*.tfrecord")
    finetuning.check_records(pattern, expected, need_labels=True)


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("learned", MADE)
def test_the_kind_is_named_and_what_to_do(tmp_path, made, learned):
    if made == learned:
        check(tmp_path, made, learned)
        return
    told = (
        rf"train-00000-of-00001.tfrecord: the records have {TOLD[made]} \(--problem_type={made}\), "
        f"and the model is for {TOLD[learned]}. Preprocess again, with --problem_type={learned}, "
        f"or give a model for {TOLD[made]}.$"
    )
    with pytest.raises(ValueError, match=told):
        check(tmp_path, made, learned)


def test_another_number_of_labels_is_named(tmp_path):
    told = "have 3 labels to choose from, and the model 2. Preprocess again, with --labels=a,b.$"
    with pytest.raises(ValueError, match=told):
        check(tmp_path, MULTI_LABEL, MULTI_LABEL, labels=("a", "b"))
