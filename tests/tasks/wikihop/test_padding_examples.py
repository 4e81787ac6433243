"""Records of the release may hold padding examples, without id: evaluation reads over them."""

import numpy as np

from etcmodel import finetuning
from etcmodel.finetuning import records
from etcmodel.tasks.wikihop import config, examples, metrics, task
from etcmodel.tasks.wikihop import features as wikihop_features
from tests.records import write
from tests.tasks.wikihop import padding, tokenizers
from tests.tasks.wikihop.raw_examples import raw_example

SETTINGS = config.WikiHopInputConfig(long_seq_length=64, global_seq_length=16)


def test_they_are_read_and_get_no_answer(tmp_path):
    tokenizer = tokenizers.wordpiece(tmp_path)
    example = examples.parse_example(raw_example())
    real = wikihop_features.make_features(example, SETTINGS, tokenizer).features
    path = write(tmp_path / "tf_examples", real, padding.padding_features(SETTINGS))
    config = task.RecordConfig(
        long_seq_length=64, global_seq_length=16, vocab_size=len(tokenizer.vocab)
    )
    records.check_records(path, config, need_labels=False)
    (batch,) = finetuning.make_eval_dataset(path, config, batch_size=4).as_numpy_iterator()
    assert batch["example_id"].tolist() == [b"w1", b""]
    np.testing.assert_array_equal(batch["long_token_ids"][1], np.zeros(64))
    scores = np.arange(16.0)
    outputs = [{"example_id": row, "logits": scores} for row in batch["example_id"]]
    assert metrics.predict(outputs, [example]) == {"w1": "new belmark"}
