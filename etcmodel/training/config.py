"""The training options shared by all programs; their flags are made from these."""

import dataclasses
import math

from etcmodel.options import Options, option, select
from etcmodel.path_checks import check_no_pattern

DISTRIBUTION_STRATEGIES = ("off", "one_device", "mirrored", "multi_worker_mirrored", "tpu")
_OF_MANY_MACHINES = ("multi_worker_mirrored", "tpu")
PRECISIONS = ("float32", "mixed_bfloat16", "mixed_float16", "auto")
# The decays of the learning rate after the warm-up, by the names in `learning_rate_schedule`:
# functions of (config, steps of the run, steps of the warm-up) to a LearningRateSchedule. Any
# module may add some. The functions of these are in `optimizer`, since they need TensorFlow.
_DECAYS_HERE = ("poly_decay", "inverse_sqrt", "constant")
DECAYS: dict = dict.fromkeys(_DECAYS_HERE)
# The training options that may change when a run is resumed.
CHANGEABLE = (
    "learning_rate",
    "learning_rate_schedule",
    "poly_power",
    "num_train_epochs",
    "warmup_proportion",
    "warmup_steps",
    "start_warmup_step",
    "early_stopping_patience",
    "stop_at_step",
    "save_checkpoints_steps",
    "steps_per_summary",
)


def has_added_decays():
    """Whether a program has added decays, without which others cannot read its runs: bool."""
    return not DECAYS.keys() <= {*_DECAYS_HERE}


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingConfig(Options):
    """Options of training that do not depend on the task: see `etcmodel train NAME --help`.

    Raises:
        ValueError: if a value is outside its range or is not one of its choices.

    >>> from etcmodel import training
    >>> config = training.TrainingConfig(output_dir="run", learning_rate=3e-5)
    >>> config.optimizer, config.warmup_proportion
    ('adamw', 0.1)
    """

    output_dir: str | None = option(
        None,
        "Directory for checkpoints, metrics and results.",
        role="run",
        group="training",
        example="run",
    )
    init_checkpoint: str | None = option(
        None,
        "Checkpoint that initializes the weights of a new run; or the folder of a model (BERT, "
        "RoBERTa, ETC …), whose sizes and vocabulary are used as well. None: random weights. After "
        "fine-tuning elsewhere, without a run in output_dir: the model to evaluate or export.",
        role="training",
        group="model",
        example="my_bert",
    )
    learning_rate: float = option(
        5e-5,
        "Peak learning rate, reached at the end of the warm-up.",
        role="training",
        lower_bound=0,
    )
    learning_rate_schedule: str = option(
        "poly_decay",
        "How the learning rate decays after the warm-up: to 0 at the last step, as 1 / sqrt(step), "
        "or not at all. poly_decay continues the curve as if there had been no warm-up; with "
        "bert_adam it starts from the peak.",
        choices=DECAYS,
        role="training",
    )
    poly_power: float = option(
        1.0, "Exponent of poly_decay. 1: linear decay.", role="training", lower_bound=0
    )
    optimizer: str = option(
        "adamw",
        "Optimizer. bert_adam is the original PyTorch BERT optimizer, used to train GMAT: no bias "
        "correction of the moments, and gradients are clipped per variable.",
        choices=("adamw", "lamb", "bert_adam"),
        role="training",
    )
    adam_bias_correction: bool | None = option(
        None,
        "Correct the bias of the moments in adamw and lamb, as their papers do; the authors' "
        "release does not, which makes early steps several times larger. None: correct it, unless "
        "--release_compatible.",
        role="training",
    )
    adam_beta_2: float = option(
        0.999,
        "Decay, below 1, of the second moment in all optimizers; 0.98 in RoBERTa's pre-training.",
        role="training",
        lower_bound=0,
    )
    weight_decay_rate: float = option(
        0.01,
        "Weight decay: fraction of a weight, times the learning rate, subtracted from it at each "
        "step.",
        role="training",
        lower_bound=0,
    )
    gradient_clip_norm: float = option(
        1.0,
        "Maximum L2 norm of the gradients; larger gradients are scaled down to it. The norm is "
        "over all gradients together; with bert_adam, over each variable's.",
        role="training",
        lower_bound=0,
    )
    ema_decay: float = option(
        0.0,
        "Decay, below 1, of a moving average of the weights, such as 0.999. The average is "
        "evaluated and exported in place of the weights. 0: no average.",
        role="training",
        lower_bound=0,
    )
    num_train_epochs: float = option(
        3.0, "Number of passes over the training examples.", role="training", lower_bound=0
    )
    warmup_proportion: float = option(
        0.1,
        "Fraction of all steps, in [0, 1], during which the learning rate rises from 0 to its "
        "peak, if there is no warmup_steps.",
        role="training",
        lower_bound=0,
        upper_bound=1,
    )
    warmup_steps: int | None = option(
        None,
        "Number of steps of that warm-up, whatever the length of the run. None: as "
        "warmup_proportion says.",
        role="training",
        lower_bound=0,
    )
    start_warmup_step: int = option(
        0, "Step at which the warm-up starts.", role="training", lower_bound=0
    )
    train_batch_size: int = option(
        32,
        "Number of examples per training step, over all devices.",
        role="training",
        lower_bound=1,
    )
    eval_batch_size: int = option(
        8,
        "Number of examples per evaluation step, per worker.",
        role="run",
        lower_bound=1,
        group="evaluation",
    )
    predict_batch_size: int = option(
        8,
        "Number of examples per prediction step, per worker.",
        role="run",
        lower_bound=1,
        group="serving",
    )
    gradient_accumulation_steps: int = option(
        1,
        "Number of parts into which each device splits its batch, processed one after the other to "
        "save memory.",
        role="training",
        lower_bound=1,
        group="devices",
    )
    mixed_precision: str = option(
        "float32",
        "Precision policy of the layers' computations. auto: mixed_bfloat16 if the device has "
        "instructions for it, else float32; a resumed run keeps what it began with.",
        choices=PRECISIONS,
        role="training",
        group="devices",
    )
    attention_tile_rows: int | None = option(
        None,
        "Number of queries per attention tile: a trade-off between speed and memory, which "
        "`etcmodel benchmark tiling` measures. None: chosen for the attention pattern.",
        role="run",
        lower_bound=1,
        group="devices",
    )
    attention_logits: int = option(
        1 << 22,
        "Number of attention logits, over batch and heads, held in memory at a time.",
        role="run",
        lower_bound=1,
        upper_bound=(1 << 31) - 1,  # Counted in int32 if lengths are not known.
        group="devices",
    )
    jit_compile: bool = option(
        False,
        "Compile the forward and backward pass with XLA: slower to start; small models run faster, "
        "a model of base size does not on a CPU.",
        role="training",
        group="devices",
    )
    random_seed: int = option(
        0,
        "Seed for the initial weights, example order and dropout.",
        role="training",
        lower_bound=0,
        upper_bound=2**32 - 1,  # NumPy accepts no others.
    )
    save_checkpoints_steps: int = option(
        500,
        "Number of steps between checkpoints (and evaluations).",
        role="run",
        lower_bound=1,
        group="training",
    )
    early_stopping_patience: int | None = option(
        None,
        "Stop after this many evaluations in a row without a better metric. None: train to the "
        "last step.",
        role="training",
        lower_bound=1,
    )
    stop_at_step: int | None = option(
        None,
        "End the run at this step, before the last one, for which the learning rate is planned. "
        "None: train to the last step.",
        role="training",
        lower_bound=1,
    )
    keep_checkpoint_max: int = option(
        5,
        "Number of most recent checkpoints to keep.",
        role="run",
        lower_bound=1,
        group="training",
    )
    steps_per_summary: int = option(
        10,
        "Number of steps over which logged metrics are averaged.",
        role="run",
        lower_bound=1,
        group="training",
    )
    tensorboard_extras: bool = option(
        False,
        "Also write to TensorBoard: the model's graph, the options with the best metric and, at "
        "each evaluation, some predictions beside the right answers and the attention of one "
        "example. Requires Matplotlib and a single machine without TPU.",
        role="run",
        group="training",
    )
    distribution_strategy: str = option(
        "one_device",
        "Devices to train on: one_device (the first GPU, else the CPU), mirrored (the GPUs of this "
        "machine), multi_worker_mirrored (the machines listed in TF_CONFIG), tpu, or off "
        "(TensorFlow's default placement).",
        choices=DISTRIBUTION_STRATEGIES,
        role="run",
        group="devices",
    )
    num_gpus: int = option(
        -1,
        "Number of GPUs to use on this machine. -1: all.",
        role="run",
        lower_bound=-1,
        group="devices",
    )
    tpu_name: str | None = option(
        None,
        "Name or grpc:// address of the TPU. 'local' on a TPU machine.",
        role="run",
        group="devices",
    )
    tpu_zone: str | None = option(
        None,
        "Google Cloud zone of the TPU. None: the zone of this machine.",
        role="run",
        group="devices",
    )
    gcp_project: str | None = option(
        None,
        "Google Cloud project of the TPU. None: the project of this machine.",
        role="run",
        group="devices",
    )

    def __post_init__(self):
        super().__post_init__()
        check_no_pattern(self.output_dir or "", "`output_dir`")
        if not self.gradient_clip_norm:
            raise ValueError(
                "`gradient_clip_norm` must be above 0. Not to clip, give a large one, such as 1e9."
            )
        if self.tensorboard_extras and self.distribution_strategy in _OF_MANY_MACHINES:
            raise ValueError(
                "`tensorboard_extras` needs one machine without TPU. Leave it, or give another "
                f"distribution_strategy than {self.distribution_strategy!r}."
            )
        if math.isinf(self.num_train_epochs):
            raise ValueError("`num_train_epochs` must be a finite number. Received: inf")
        if self.adam_bias_correction and self.optimizer == "bert_adam":
            raise ValueError(
                "`adam_bias_correction` is for adamw and lamb: bert_adam corrects no bias. Leave "
                "it, or give another `optimizer`."
            )
        for name in ("ema_decay", "adam_beta_2"):
            if getattr(self, name) >= 1:
                raise ValueError(f"`{name}` must be below 1. Received: {getattr(self, name)}")
        if self.train_batch_size % self.gradient_accumulation_steps:
            raise ValueError(
                "`train_batch_size` must be a multiple of "
                f"gradient_accumulation_steps={self.gradient_accumulation_steps}. "
                f"Received: {self.train_batch_size}"
            )

    def num_train_steps(self, num_train_examples):
        """Number of steps that the learning rate is planned for: int.

        It is rounded down, as in the authors' release.

        Raises:
            ValueError: if the epochs have fewer examples than one batch.
        """
        num_steps = int(num_train_examples / self.train_batch_size * self.num_train_epochs)
        if num_steps < 1:
            raise ValueError(
                f"{self.num_train_epochs} epochs of {num_train_examples} examples are less than "
                f"one batch of train_batch_size={self.train_batch_size}"
            )
        return num_steps

    def last_step(self, num_train_steps):
        """The step at which a run ends that is planned for `num_train_steps`: int."""
        return min(num_train_steps, self.stop_at_step or num_train_steps)

    def attention_tiling(self):
        """The `ops.tiles.Tiling` of the run; dropout depends on it."""
        from etcmodel.ops import tiles  # Imports TensorFlow, which --help should not wait for.

        return tiles.Tiling(rows=self.attention_tile_rows, logits=self.attention_logits)

    def result_fields(self):
        """The options that determine the run's results: dict."""
        return select(self, "training")
