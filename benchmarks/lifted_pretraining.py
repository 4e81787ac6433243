"""Measures the loss from extending a short model to longer texts, and what a few updates regain.

A small masked language model with full attention over short windows is trained on texts. It then
initializes models with longer windows, as RoBERTa initializes Longformer, with position embeddings
that are copied or random; these are trained further, once with only the position embeddings. Losses
are measured on held-out text, in windows of the model's length. Each stage is a run in
--output_dir; the same command resumes where it stopped.

  python -m benchmarks.lifted_pretraining --texts=one.txt.gz,two.txt.gz \
    --output_dir=lifted
"""

import dataclasses
import os

from etcmodel.options import Options, option, run_program

HEAD_SIZE = 32


@dataclasses.dataclass(frozen=True, kw_only=True)
class LiftedPretrainingOptions(Options):
    """The texts and the settings of the measurement."""

    texts: tuple = option(
        (), "Text files, compressed with gzip if they end in .gz.", is_needed=True
    )
    output_dir: str = option(
        "", "Directory for vocabulary, records, runs and result.json.", is_needed=True
    )
    heldout_share: float = option(
        0.04, "Fraction of each text, at its end, that is held out.", lower_bound=0, upper_bound=0.5
    )
    vocab_size: int = option(1000, "Vocabulary size of the byte-level BPE.", lower_bound=300)
    hidden_size: int = option(128, "Hidden size; a multiple of 32, the head size.", lower_bound=32)
    num_layers: int = option(3, "Number of Transformer layers.", lower_bound=1)
    short_length: int = option(64, "Length of the short model's windows, in tokens.", lower_bound=4)
    long_length: int = option(512, "Length of the long models' windows, in tokens.", lower_bound=4)
    tokens_per_step: int = option(2048, "Number of tokens per batch, in all runs.", lower_bound=4)
    short_steps: int = option(1500, "Number of training steps of the short model.", lower_bound=1)
    updates: int = option(
        200,
        "Number of training steps of the long models, which are initialized from the short one.",
        lower_bound=1,
    )
    evaluations: int = option(
        2, "Number of evaluations in each run of a long model.", lower_bound=1
    )
    initializer_range: float = option(
        0.02, "Standard deviation of the short model's initial weights.", lower_bound=0
    )
    learning_rate: float = option(
        1e-3, "Peak learning rate of the short model; the long models use 3/10 of it."
    )
    random_seed: int = option(0, "Seed of weights, example order and masks.")

    def __post_init__(self):
        super().__post_init__()
        if self.hidden_size % HEAD_SIZE:
            raise ValueError(
                f"--hidden_size={self.hidden_size} must be a multiple of {HEAD_SIZE}, the size of "
                "a head."
            )
        if self.short_length % 2:
            raise ValueError(
                f"--short_length={self.short_length} must be even: it is the lifted models' "
                "window, half of which is on each side."
            )
        if self.long_length < self.short_length:
            raise ValueError(
                f"--long_length={self.long_length} must not be below "
                f"--short_length={self.short_length}."
            )
        for name in ("short_length", "long_length"):
            if self.tokens_per_step % getattr(self, name):
                raise ValueError(
                    f"--tokens_per_step={self.tokens_per_step} must be a multiple of "
                    f"--{name}={getattr(self, name)}: a batch has whole windows."
                )

    def path(self, *names):
        """A path below the output directory."""
        return os.path.join(self.output_dir, *names)


def main(options):
    """Runs the benchmark of `LiftedPretrainingOptions`, and prints a table."""
    from benchmarks import lifted_stages  # With TensorFlow.

    for name, length, losses in lifted_stages.measure(options):
        told = ", ".join(f"{loss:.3f} after {step} updates" for step, loss in losses.items())
        print(f"{name}, windows of {length} tokens: MLM loss {told}")


if __name__ == "__main__":
    run_program(LiftedPretrainingOptions, main)
