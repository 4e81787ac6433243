"""The tasks of the release with small models, on the records of the first edition."""

import pathlib

from etcmodel.models import modeling
from etcmodel.tasks.hotpotqa import task as hotpotqa
from etcmodel.tasks.nq import task as nq
from etcmodel.tasks.openkp import task as openkp
from etcmodel.tasks.wikihop import task as wikihop

_RECORDS = pathlib.Path(__file__).parents[1] / "fixtures" / "first_edition"
# Task, what names of records begin with, lengths of the records' inputs, further options.
TASKS = {
    "hotpotqa": (hotpotqa.HotpotQaTask, "", (320, 96), {}),
    "nq": (nq.NqTask, "", (128, 32), {"question_len": 16}),
    "openkp": (openkp.OpenKpTask, "openkp_", (104, 16), {"url_max_code_points": 100}),
    "wikihop": (wikihop.WikiHopTask, "", (160, 56), {}),
}


def make(name, sizes, add=0, **options):
    """A task of `TASKS`.

    Args:
        name: str.
        sizes: dict of entries of the model's config.
        add: int. So many more places of padding than the records have.
        **options: of the task, beside its own.
    """
    task_class, prefix, (long, globals_), own = TASKS[name]
    vocab_file = _RECORDS / name / "vocab.txt"
    config = modeling.EtcConfig(
        vocab_size=len(vocab_file.read_text(encoding="utf-8").splitlines()),
        **{
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "local_radius": 7,
            "relative_pos_max_distance": 4,
            "relative_vocab_size": 12,
            "hidden_dropout_prob": 0.0,
            "attention_probs_dropout_prob": 0.0,
            **sizes,
        },
    )
    records = _RECORDS / name / "records"
    return task_class(
        task_class.config_class(
            encoder_config=config,
            vocab_file=str(vocab_file),
            train_data=str(records / f"{prefix}train-*.tfrecord"),
            eval_data=str(records / f"{prefix}dev-*.tfrecord"),
            long_seq_length=long + add,
            global_seq_length=globals_ + add,
            **own,
            **options,
        )
    )
