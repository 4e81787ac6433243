"""The trainer of a task, as a run makes it."""

import tensorflow as tf

from etcmodel import training
from etcmodel.training import run
from etcmodel.training import trainer as trainer_lib

BATCH_SIZE = 2


def build(task, strategy):
    """The model and the `Trainer` of a task, for steps of `BATCH_SIZE` examples."""
    config = training.TrainingConfig(train_batch_size=BATCH_SIZE, num_train_epochs=10.0)
    with strategy.scope():
        model = run.build_model(task, config)
        optimizer = training.build_optimizer(config, 1e-3)
        global_step = tf.Variable(0, dtype=tf.int64)
    trainer = trainer_lib.Trainer(
        task=task,
        model=model,
        optimizer=optimizer,
        config=config,
        strategy=strategy,
        global_step=global_step,
    )
    return model, trainer
