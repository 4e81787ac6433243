"""A training phase of a character model, as a task for `etcmodel.training`."""

from etcmodel.finetuning import options_task

from . import evaluate, inputs, model, text
from .run_options import CharLmOptions

__all__ = ["CharLmTask"]


class CharLmTask(options_task.OptionsTask):
    """Trains and evaluates; the work is done by the modules beside this one.

    Args:
        config: `CharLmOptions` of the phase.
        whole_text: `text.Text`.
        num_train_examples: int. Number of sequences in the phase, over all steps.
    """

    config_class = CharLmOptions
    best_metric = "bits_per_character"
    higher_is_better = False

    def __init__(self, config, whole_text, num_train_examples=0):
        super().__init__(config)
        self.text = whole_text
        self._num_train_examples = num_train_examples

    @property
    def num_train_examples(self):
        return self._num_train_examples

    @property
    def eval_text(self):
        """The text to evaluate on: uint8 array."""
        return getattr(self.text, self.config.eval_split)[: self.config.max_eval_bytes]

    def check_lengths(self, for_training=True):
        """Raises ValueError if a text is too short, or the sizes of evaluations do not fit."""
        length, _ = self.config.eval_sizes
        what = f"the {self.config.eval_split} text"
        inputs.check_length(self.eval_text, length, what, "--eval_length")
        if for_training:
            flags = "--seq_length or --max_seq_length"
            inputs.check_length(self.text.train, self.config.seq_length, "the training text", flags)

    def build_model(self):
        made = model.NextCharacterModel(self.config.encoder_config)
        made.build()
        return made

    def loss(self, outputs, features):
        del features
        return model.loss(outputs)

    def train_dataset(self, request):
        return inputs.make_train_dataset(self.text.train, self.config.seq_length, request)

    def eval_dataset(self, batch_size):
        return inputs.make_eval_dataset(self.eval_text, *self.config.eval_sizes, batch_size)

    def evaluate(self, predictions):
        of, by = self.eval_text, self.text.train
        return {
            **evaluate.metrics(predictions),
            "unigram_bits_per_character": text.unigram_bits(of, by),
        }

    def run_notes(self):
        return self.text.notes
