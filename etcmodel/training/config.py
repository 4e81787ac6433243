"""What every training run is told: one frozen record, from which the shared flags are made."""

import dataclasses

__all__ = ["DISTRIBUTION_STRATEGIES", "PRECISIONS", "TrainingConfig"]

DISTRIBUTION_STRATEGIES = ("off", "one_device", "mirrored", "multi_worker_mirrored", "tpu")
PRECISIONS = ("float32", "mixed_bfloat16", "mixed_float16")

_AT_LEAST_1 = (
    "train_batch_size",
    "eval_batch_size",
    "predict_batch_size",
    "gradient_accumulation_steps",
    "save_checkpoints_steps",
    "keep_checkpoint_max",
    "steps_per_summary",
)
_AT_LEAST_0 = (
    "learning_rate",
    "poly_power",
    "num_train_epochs",
    "start_warmup_step",
    "weight_decay_rate",
)


def _option(default, help_text, *, choices=None, same_result=False):
    """A field; `same_result`: a run may be resumed with another value of it."""
    metadata = {"help": help_text, "choices": choices, "same_result": same_result}
    return dataclasses.field(default=default, metadata=metadata)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """Options of training that do not depend on the task; each field's help says what it means.

    Raises:
        ValueError: if a value is outside its range or is not one of its choices.
    """

    output_dir: str | None = _option(
        None, "Directory of checkpoints, metrics and results.", same_result=True
    )
    init_checkpoint: str | None = _option(
        None, "Checkpoint whose weights a new run starts from. None: random weights."
    )
    learning_rate: float = _option(5e-5, "Peak learning rate, reached at the end of the warm-up.")
    learning_rate_schedule: str = _option(
        "poly_decay",
        "How the learning rate falls after the warm-up: to 0 at the last step, or as "
        "1 / sqrt(step).",
        choices=("poly_decay", "inverse_sqrt"),
    )
    poly_power: float = _option(1.0, "Exponent of poly_decay. 1: linear.")
    optimizer: str = _option("adamw", "Optimizer.", choices=("adamw", "lamb"))
    weight_decay_rate: float = _option(
        0.01, "Share of a weight, times the learning rate, taken off it each step."
    )
    num_train_epochs: float = _option(3.0, "Passes over the training examples.")
    warmup_proportion: float = _option(
        0.1, "Share of all steps, in [0, 1], in which the learning rate rises from 0 to its peak."
    )
    start_warmup_step: int = _option(0, "Step at which the warm-up starts.")
    train_batch_size: int = _option(32, "Examples of one training step, over all devices.")
    eval_batch_size: int = _option(
        8, "Examples of one evaluation step, per worker.", same_result=True
    )
    predict_batch_size: int = _option(
        8, "Examples of one prediction step, per worker.", same_result=True
    )
    gradient_accumulation_steps: int = _option(
        1,
        "Parts into which each device splits its batch, one after the other, to need less memory.",
    )
    mixed_precision: str = _option(
        "float32", "Number format of the layers' arithmetic.", choices=PRECISIONS
    )
    jit_compile: bool = _option(
        False, "Compile the forward and backward pass with XLA: slower to start, often faster."
    )
    random_seed: int = _option(0, "Seed of initial weights, example order and dropout.")
    save_checkpoints_steps: int = _option(
        500, "Steps between two checkpoints (and evaluations).", same_result=True
    )
    keep_checkpoint_max: int = _option(
        5, "Number of latest checkpoints that are kept.", same_result=True
    )
    steps_per_summary: int = _option(
        10, "Steps over which logged metrics are averaged.", same_result=True
    )
    distribution_strategy: str = _option(
        "one_device",
        "Devices to train on: one_device (the first GPU, else the CPU), mirrored (GPUs of this "
        "machine), multi_worker_mirrored (machines listed in TF_CONFIG), tpu, or off "
        "(TensorFlow's default placement).",
        choices=DISTRIBUTION_STRATEGIES,
        same_result=True,
    )
    num_gpus: int = _option(-1, "GPUs to use on this machine. -1: all.", same_result=True)
    tpu_name: str | None = _option(
        None, "Name or grpc:// address of the TPU. 'local' on a TPU machine.", same_result=True
    )
    tpu_zone: str | None = _option(None, "Zone of the TPU. None: this one.", same_result=True)
    gcp_project: str | None = _option(
        None, "Cloud project of the TPU. None: this one.", same_result=True
    )

    def __post_init__(self):
        for field in dataclasses.fields(self):
            choices, value = field.metadata["choices"], getattr(self, field.name)
            if choices and value not in choices:
                raise ValueError(f"`{field.name}` must be one of {choices}. Received: {value!r}")
        for names, lowest in ((_AT_LEAST_1, 1), (_AT_LEAST_0, 0)):
            for name in names:
                self._require(name, getattr(self, name) >= lowest, f"at least {lowest}")
        self._require("warmup_proportion", 0 <= self.warmup_proportion <= 1, "between 0 and 1")
        self._require("num_gpus", self.num_gpus >= -1, "at least -1")
        self._require(
            "train_batch_size",
            self.train_batch_size % self.gradient_accumulation_steps == 0,
            f"a multiple of gradient_accumulation_steps={self.gradient_accumulation_steps}",
        )

    def _require(self, name, is_met, condition):
        if not is_met:
            raise ValueError(f"`{name}` must be {condition}. Received: {getattr(self, name)!r}")

    def num_train_steps(self, num_train_examples):
        """Steps of the whole run: int, rounded down as in the authors' release.

        Raises:
            ValueError: if the epochs hold less than one batch.
        """
        num_steps = int(num_train_examples / self.train_batch_size * self.num_train_epochs)
        if num_steps < 1:
            raise ValueError(
                f"{self.num_train_epochs} epochs of {num_train_examples} examples are less than "
                f"one batch of train_batch_size={self.train_batch_size}"
            )
        return num_steps

    def result_fields(self):
        """The options that decide what the run computes, by name."""
        fields = dataclasses.fields(self)
        return {f.name: getattr(self, f.name) for f in fields if not f.metadata["same_result"]}
