"""The inner loop of training: steps under a strategy, with their mean metrics.

With a scaled loss (float16) the optimizer skips a step whose gradients are not finite and halves
the scale, down to 1. Metrics of a step that are not finite are left out of the means. A step that
is not finite although the scale cannot be lowered stops the run.
"""

import contextlib
import math
import time

import tensorflow as tf
import tf_keras

from etcmodel.autograph import without_autograph
from etcmodel.autotuning import without_autotuning
from etcmodel.ops import dropout as dropout_ops
from etcmodel.training import model_garden
from etcmodel.training import optimizer as optimizer_lib
from etcmodel.training import task as task_lib


def call_model(model, features, *, training, select=task_lib.model_features):
    """Calls the model with the features that it uses.

    Args:
        model, features: as in `Task.model_features`.
        training: bool. Whether dropout is active, and the loss follows.
        select: function such as a task's `model_features`.
    Returns:
        Dict of tensors [batch, ...]; a single output gets the name "logits".
    """
    return outputs_of(model, select(model, features, training=training), training=training)


def outputs_of(model, inputs, *, training):
    """The outputs for selected features: dict, as of `call_model`."""
    outputs = model(inputs, training=training)
    return outputs if isinstance(outputs, dict) else {"logits": outputs}


def mean_gradients(
    loss_fn, variables, features, *, num_parts, seed, scale_loss=tf.identity, shares=None
):
    """Gradients of the mean loss over a batch that is processed in `num_parts` parts.

    Args:
        loss_fn: function from features to a dict of scalars, each a mean over its examples; the
            gradients are those of "loss".
        variables: list of trainable variables.
        features: dict of tensors [batch, ...].
        num_parts: int. Must divide the batch size. The parts run one after the other, so that only
            the activations of one part are in memory.
        seed: int32 [2]. Seed of the batch, from which each part derives its dropout seed.
        scale_loss: function applied to the loss before it is differentiated.
        shares: float32 [num_parts]. Factors of the parts' scalars, see `shares_of_parts`; or a dict
            of them by names of scalars, each of which is a term of "loss". None: 1.
    Returns:
        (list of dense tensors, one per variable, or None if the loss does not depend on it; dict of
        the mean scalars).
    """

    def part_gradients(part):
        seed_of_part = tf.random.experimental.stateless_fold_in(seed, part)
        with tf.GradientTape() as tape, dropout_ops.seed_scope(seed_of_part):
            losses = loss_fn(part_of(features, part, num_parts))
            losses = _shared(losses, shares, part)
            objective = scale_loss(losses["loss"])
        return [_dense(gradient) for gradient in tape.gradient(objective, variables)], losses

    # The first part is outside the loop, since it shows which gradients exist.
    gradients, losses = part_gradients(0)
    if num_parts == 1:
        return gradients, losses
    names = sorted(losses)
    used = [i for i, gradient in enumerate(gradients) if gradient is not None]

    def add_part(part, *sums):
        more_gradients, more_losses = part_gradients(part)
        more = [more_gradients[i] for i in used] + [more_losses[name] for name in names]
        return part + 1, *(total + term for total, term in zip(sums, more, strict=True))

    _, *sums = tf.while_loop(
        lambda part, *_: part < num_parts,
        add_part,
        [1, *(gradients[i] for i in used), *(losses[name] for name in names)],
        parallel_iterations=1,
    )
    means = [total / num_parts for total in sums]
    for i, mean in zip(used, means, strict=False):
        gradients[i] = mean
    return gradients, dict(zip(names, means[len(used) :], strict=True))


def _shared(losses, shares, part):
    """The scalars of a part times its factors."""
    if shares is None:
        return losses
    if not isinstance(shares, dict):
        return {name: shares[part] * x for name, x in losses.items()}
    if missing := sorted(set(shares) - set(losses)):
        raise ValueError(
            f"The task's `loss_weight` has a weight of {missing[0]!r}, which its `loss` does not "
            f"return: {sorted(losses)}. Return it, or None as the weight: parts then count alike."
        )
    parts = {name: of_parts[part] * losses[name] for name, of_parts in shares.items()}
    # What else is added to the loss counts alike in all parts.
    more = [x - losses[name] for name, x in parts.items()]
    return {**losses, **parts, "loss": tf.add_n([losses["loss"], *more])}


def shares_of_parts(weights, replica):
    """Factors with which the mean over parts and devices is that of the whole batch.

    Args:
        weights: float32 [num_parts]. Over how much each part of this device's batch is a mean.
        replica: `tf.distribute.ReplicaContext`.
    Returns:
        float32 [num_parts]; 0 if there is nothing in any part of any device.
    """
    mean = replica.all_reduce(tf.distribute.ReduceOp.MEAN, tf.reduce_mean(weights))
    return tf.math.divide_no_nan(weights, mean)


def part_of(features, part, num_parts):
    """The features [batch / num_parts, ...] of one part."""
    if num_parts == 1:
        return features

    def of_tensor(x):
        size = -1 if x.shape[0] is None else x.shape[0] // num_parts
        # [batch, ...] -> [num_parts, batch / num_parts, ...]
        return tf.reshape(x, tf.concat([[num_parts, size], tf.shape(x)[1:]], axis=0))[part]

    return tf.nest.map_structure(of_tensor, features)


def _dense(gradient):
    """A dense gradient, in which rows looked up several times are summed, as the norm needs."""
    if isinstance(gradient, tf.IndexedSlices):
        return tf.convert_to_tensor(gradient)
    return gradient


_NONE_YET = -1


class NonFiniteLossError(ArithmeticError):
    """Raised if the loss, or its gradient, becomes infinite or not a number.

    >>> from etcmodel import training
    >>> issubclass(training.NonFiniteLossError, ArithmeticError)
    True
    """


class Trainer(model_garden.StandardTrainer):
    """Trains a task's model in loops of steps, with metrics averaged over each loop.

    A step depends only on the weights, the optimizer's state, the step number and the seed, so that
    a run that is resumed from a checkpoint equals an uninterrupted one.

    Args:
        task: Task.
        model: the task's model, created in the strategy's scope, like the optimizer.
        optimizer: the result of `build_optimizer`.
        config: TrainingConfig.
        strategy: tf.distribute.Strategy.
        global_step: int64 variable. Steps done. It must already be restored, since the data
            continue from there.
        stop: `StopRequest`. None: a loop cannot be stopped.
        average: `WeightAverage` of the trained variables. None: no average.
        during_steps: function that returns a context manager in which each loop of steps runs.
    Raises:
        ValueError: if `config.train_batch_size` is not a multiple of the number of devices times
            the accumulation steps.
    """

    def __init__(
        self,
        *,
        task,
        model,
        optimizer,
        config,
        strategy,
        global_step,
        stop=None,
        average=None,
        during_steps=contextlib.nullcontext,
    ):
        self._task, self._model, self._optimizer = task, model, optimizer
        self._config, self._strategy, self._global_step = config, strategy, global_step
        self._stop, self._average, self._during_steps = stop, average, during_steps
        self._variables = task.trained_variables(model)
        # Metric name -> variables (sum, number of finite values); filled when the first step is
        # traced.
        self._sums = {}
        self._first_bad_step = self._host_variable(_NONE_YET, tf.int64)
        self._first_bad_loss = self._host_variable(0.0, tf.float32)
        self._check_batch_size()
        super().__init__(model_garden.make_distributed_dataset(strategy, self._dataset))

    def _check_batch_size(self):
        replicas = self._strategy.num_replicas_in_sync
        parts = replicas * self._config.gradient_accumulation_steps
        if self._config.train_batch_size % parts:
            raise ValueError(
                f"`train_batch_size` must be a multiple of {parts}: {replicas} devices times "
                f"{self._config.gradient_accumulation_steps} gradient accumulation steps. "
                f"Received: {self._config.train_batch_size}"
            )

    def _dataset(self, input_context):
        batch_size = self._config.train_batch_size
        request = task_lib.TrainDataRequest(
            global_batch_size=batch_size,
            seed=self._config.random_seed,
            skip_examples=int(self._global_step.numpy()) * batch_size,
            input_context=input_context,
        )
        return without_autotuning(self._task.train_dataset(request))

    def create_train_loop_fn(self):
        """Steps in one graph; the very first step is run separately.

        It is traced and compiled, so its time is not representative.
        """
        loop = super().create_train_loop_fn() if self._stop is None else self._stoppable_loop()
        is_traced = False

        def trace_then_loop(iterator, num_steps):
            nonlocal is_traced
            if not is_traced:
                loop(iterator, tf.constant(1))
                is_traced = True
                self._start_clock()
                num_steps -= 1
            if num_steps > 0:
                loop(iterator, num_steps)

        return trace_then_loop

    def _stoppable_loop(self):
        """Orbit's loop, which also ends when a stop is due."""
        is_due, train_step = self._stop.is_due, self.train_step

        @tf.function
        def loop(iterator, num_steps):
            for _ in tf.range(num_steps):
                if is_due.read_value():
                    break
                with tf.name_scope(""):  # Otherwise names would begin with that of the loop.
                    train_step(iterator)

        return loop

    def train(self, num_steps):
        """Runs steps, fewer if a stop is requested; returns the result of `train_loop_end`."""
        with self._during_steps():
            metrics = super().train(num_steps)
        if self._stop is not None:
            self._stop.act_if_due(metrics)
        return metrics

    def _start_clock(self):
        self._start = time.monotonic(), int(self._global_step.numpy())

    def train_loop_begin(self):
        """Resets the means."""
        self._start_clock()
        for total, count in self._sums.values():
            total.assign(0.0)
            count.assign(0.0)

    def train_step(self, iterator):
        """Runs one step on all devices."""
        # Read before the step, which may lower the scale.
        loss_scale = self._optimizer.loss_scale if self._scales_loss else tf.constant(1.0)
        metrics = self._strategy.run(self._replica_step, args=(next(iterator),))
        mean = tf.distribute.ReduceOp.MEAN
        metrics = {k: self._strategy.reduce(mean, v, axis=None) for k, v in metrics.items()}
        self._note_bad_step(metrics["loss"], metrics["gradient_norm"], loss_scale)
        for name, value in metrics.items():
            is_finite = tf.math.is_finite(value)
            total, count = self._sum_of(name)
            total.assign_add(tf.where(is_finite, value, 0.0))
            count.assign_add(tf.cast(is_finite, tf.float32))
        self._global_step.assign_add(1)
        if self._stop is not None:
            self._stop.agree()

    def train_loop_end(self):
        """Means over the loop's steps.

        Returns:
            Dict of floats: the parts of the loss, "gradient_norm" (before clipping),
            "learning_rate" (of the last step) and "examples_per_second" (without the traced step).
            Metrics that were not finite, or not measured, in any step of the loop are left out.
        Raises:
            NonFiniteLossError: if the loss or the gradient of a step was not finite and the cause
                was not the scale of the loss.
        """
        if (bad_step := int(self._first_bad_step.numpy())) != _NONE_YET:
            is_loss = not math.isfinite(self._first_bad_loss.numpy())
            raise NonFiniteLossError(
                f"The {'loss' if is_loss else 'gradient'} of step {bad_step + 1} is not finite; "
                "nothing was saved since the last checkpoint. A lower learning_rate or a longer "
                "warm-up may help."
            )
        start_time, start_step = self._start
        num_steps = int(self._global_step.numpy()) - start_step
        seconds = time.monotonic() - start_time
        sums = {name: [float(x.numpy()) for x in pair] for name, pair in self._sums.items()}
        metrics = {name: total / count for name, (total, count) in sums.items() if count}
        metrics["learning_rate"] = self._last_learning_rate()
        if num_steps:
            metrics["examples_per_second"] = num_steps * self._config.train_batch_size / seconds
        return metrics

    def _replica_step(self, features):
        replica = tf.distribute.get_replica_context()
        fold_in = tf.random.experimental.stateless_fold_in
        seed = fold_in([self._config.random_seed, 0], self._global_step)
        seed = fold_in(seed, tf.cast(replica.replica_id_in_sync_group, tf.int32))
        variables, shares = self._variables, self._shares(replica, features)

        def of_batch(features, seed, shares):
            return mean_gradients(
                self._losses,
                variables,
                features,
                num_parts=self._config.gradient_accumulation_steps,
                seed=seed,
                scale_loss=self._optimizer.get_scaled_loss if self._scales_loss else tf.identity,
                shares=shares,
            )

        if self._config.jit_compile:
            of_batch = tf.function(of_batch, jit_compile=True)
        gradients, losses = of_batch(features, seed, shares)
        norm = self._update(replica, gradients, variables)
        return {**losses, "gradient_norm": norm}

    def _shares(self, replica, features):
        """The factors of the parts of this device's batch; None if all count the same."""
        num_parts = self._config.gradient_accumulation_steps
        if num_parts * self._strategy.num_replicas_in_sync == 1:
            return None
        weights = [
            self._task.loss_weight(part_of(features, part, num_parts)) for part in range(num_parts)
        ]
        if weights[0] is None:
            return None
        return tf.nest.map_structure(
            lambda *x: shares_of_parts(tf.cast(tf.stack(x), tf.float32), replica), *weights
        )

    def _losses(self, features):
        select = self._task.model_features
        outputs = call_model(self._model, features, training=True, select=select)
        return self._task.loss(outputs, features)

    @without_autograph
    def _update(self, replica, gradients, variables):
        """Applies the mean of the gradients over devices; returns its norm before clipping."""
        pairs = zip(gradients, variables, strict=True)
        used = [(gradient, var) for gradient, var in pairs if gradient is not None]
        gradients, variables = (list(column) for column in zip(*used, strict=True))
        gradients = replica.all_reduce(tf.distribute.ReduceOp.MEAN, gradients)
        if self._scales_loss:
            gradients = self._optimizer.get_unscaled_gradients(gradients)
        gradients, norm = optimizer_lib.clip_gradients(
            gradients,
            self._config.gradient_clip_norm,
            per_variable=self._config.optimizer == "bert_adam",
        )
        self._optimizer.apply_gradients(
            zip(gradients, variables, strict=True), experimental_aggregate_gradients=False
        )
        if self._average is not None:
            self._average.update(self._global_step)
        return norm

    @property
    def _scales_loss(self):
        return isinstance(self._optimizer, tf_keras.mixed_precision.LossScaleOptimizer)

    @without_autograph
    def _note_bad_step(self, loss, gradient_norm, loss_scale):
        is_bad = ~(tf.math.is_finite(loss) & tf.math.is_finite(gradient_norm))
        # If the scale is above 1, the optimizer skips the step and lowers it.
        is_bad &= loss_scale <= 1.0
        is_first = is_bad & (self._first_bad_step == _NONE_YET)
        self._first_bad_loss.assign(tf.where(is_first, loss, self._first_bad_loss))
        self._first_bad_step.assign(tf.where(is_first, self._global_step, self._first_bad_step))

    @without_autograph
    def _sum_of(self, name):
        if name not in self._sums:
            with tf.init_scope():
                self._sums[name] = [self._host_variable(0.0, tf.float32) for _ in range(2)]
        return self._sums[name]

    def _host_variable(self, value, dtype):
        """A variable on the host that a step changes after the devices are done."""
        aggregation = tf.VariableAggregation.ONLY_FIRST_REPLICA
        with self._strategy.scope():
            return tf.Variable(value, dtype=dtype, trainable=False, aggregation=aggregation)

    def _last_learning_rate(self):
        schedule = self._optimizer.learning_rate
        if callable(schedule):
            return float(schedule(tf.maximum(self._optimizer.iterations - 1, 0)))
        return float(schedule)
