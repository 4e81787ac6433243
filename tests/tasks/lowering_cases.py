"""A small task of each kind, so that each system is the model of one, on a record of zeros.

Those of texts skip padding, which XLA must not see: lengths would depend on data.
"""

import functools

import tensorflow as tf

from etcmodel.models import modeling
from etcmodel.pretrain import task as pretrain_task
from etcmodel.tasks.classification import task as classification
from etcmodel.tasks.hotpotqa import task as hotpotqa
from etcmodel.tasks.majority_tagging import task as majority_tagging
from etcmodel.tasks.nq import task as nq
from etcmodel.tasks.numerical_reasoning import task as numerical_reasoning
from etcmodel.tasks.openkp import task as openkp
from etcmodel.tasks.summarization import task as summarization
from etcmodel.tasks.triviaqa import task as triviaqa
from etcmodel.tasks.wikihop import task as wikihop
from etcmodel.tools.demos import numerical_reasoning as numerical_demo
from tests import vocabularies
from tests.models.gmat import small as gmat
from tests.models.led import models as led
from tests.models.longformer import small as longformer
from tests.models.longt5 import models as longt5
from tests.models.pegasus_x import models as pegasus_x
from tests.pretrain import windows
from tests.records import write

LONG, GLOBAL = 24, 8


def etc_config():
    sizes = {"hidden_size": 8, "intermediate_size": 8, "local_radius": 5}
    relations = {"relative_pos_max_distance": 4, "relative_vocab_size": 12}
    return modeling.EtcConfig(30, num_hidden_layers=1, num_attention_heads=2, **sizes, **relations)


def write_record(path, records):
    """A record of all features, each of zeros, or an empty string."""
    features = {
        **records.model_features(),
        **records.label_features(),
        **records.decoding_features(),
    }
    zeros = {tf.int64: 0, tf.float32: 0.0, tf.string: ""}
    values = {
        name: [zeros[feature.dtype]] * tf.TensorShape(feature.shape).num_elements()
        for name, feature in features.items()
    }
    write(path, values)


def make(folder, task_class, encoder_config, **options):
    """A task whose training and evaluation have the same record."""
    path = str(folder / "zeros.tfrecord")
    given = {"long_seq_length": LONG, "train_data": path, "eval_data": path, **options}
    config = task_class.config_class(encoder_config=encoder_config, **given)
    write_record(path, config.records())
    return task_class(config)


def of_etc(task_class, **options):
    options["global_seq_length"] = GLOBAL
    return lambda folder: make(folder, task_class, etc_config(), **options)


def make_numerical_reasoning(folder):
    vocab = numerical_demo.vocabulary()
    config = gmat.config(num_hidden_layers=1, vocab_size=len(vocab))
    options = {"vocab_file": vocabularies.write(folder, vocab), "max_answer_length": 5}
    options["skip_padding"] = True
    return make(folder, numerical_reasoning.NumericalTask, config, **options)


def make_majority_tagging(folder):
    config = gmat.config(num_hidden_layers=1)
    return make(folder, majority_tagging.MajorityTask, config, pairs=2, skip_padding=True)


def make_triviaqa(folder):
    config = longformer.config(num_hidden_layers=1, attention_window=(4,), max_global_tokens=6)
    options = {"global_seq_length": GLOBAL, "skip_padding": True}
    return make(folder, triviaqa.TriviaQaTask, config, **options)


def make_summarization(config, folder):
    return make(folder, summarization.SummarizationTask, config, target_length=4)


def of_summarization(config):
    return functools.partial(make_summarization, config)


def make_pretraining(folder):
    tokenizer = windows.make_tokenizer(folder)
    documents = [windows.document(str(n), *range(n, n + 4)) for n in range(6)]
    rows = windows.make_windows(documents, tokenizer).features
    records = write(folder / "text.tfrecord", *rows)
    config = pretrain_task.PretrainConfig(
        encoder_config=windows.etc_config(num_hidden_layers=1),
        train_data=records,
        eval_data=records,
        vocab_file=str(folder / "vocab.txt"),
        long_seq_length=windows.LONG,
        global_seq_length=windows.GLOBAL,
    )
    return pretrain_task.PretrainTask(config)


_LED = {"encoder_layers": 1, "decoder_layers": 1, "attention_window": (4,), "max_global_tokens": 1}
_LONGT5 = {"num_layers": 1, "num_decoder_layers": 1}
_PEGASUS_X = {"encoder_layers": 1, "decoder_layers": 1}

# Task, and system where it is not ETC: function of a folder to the task.
TASKS = {
    "hotpotqa": of_etc(hotpotqa.HotpotQaTask),
    "nq": of_etc(nq.NqTask, mask_long_output=True, cls_token_id=1, sep_token_id=2),
    "openkp": of_etc(openkp.OpenKpTask, url_max_code_points=20),
    "wikihop": of_etc(wikihop.WikiHopTask),
    "classification": of_etc(
        classification.ClassificationTask, labels=("a", "b"), skip_padding=True
    ),
    "triviaqa longformer": make_triviaqa,
    "majority_tagging gmat": make_majority_tagging,
    "numerical_reasoning gmat": make_numerical_reasoning,
    "summarization led": of_summarization(led.config(**_LED)),
    "summarization longt5": of_summarization(longt5.config(**_LONGT5)),
    "summarization pegasus_x": of_summarization(pegasus_x.config(**_PEGASUS_X)),
    "pretraining": make_pretraining,
}
