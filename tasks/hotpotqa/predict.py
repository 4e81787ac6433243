"""From raw HotpotQA JSON to answers, with an exported model."""

import json
import pathlib
import tempfile

import tensorflow as tf

from etcmodel import serving
from etcmodel.models import modeling

from . import decode, examples, inputs
from .task import HotpotQaConfig

__all__ = ["HotpotQaPredictor", "export"]

_VOCAB, _SPM_MODEL = "vocab.txt", "spiece.model"
_ETC_CONFIG, _TASK_CONFIG = "etc_config.json", "hotpotqa_config.json"
_KEPT_OPTIONS = (
    "max_long_seq_length",
    "max_global_seq_length",
    "answer_encoding_method",
    "flat_sequence",
    "supporting_fact_threshold",
    "max_answer_length",
    "release_compatible",
    "do_lower_case",
)


def export(model, config, directory):
    """Writes a trained model as a SavedModel, with its vocabulary and options.

    Args:
        model: `HotpotQaModel`.
        config: `HotpotQaConfig`.
        directory: where to write; must not exist.
    """
    config.tokenizer()  # Refuses a vocabulary that does not fit.
    options = {name: getattr(config, name) for name in _KEPT_OPTIONS}
    vocabulary = (
        {_SPM_MODEL: config.spm_model_file}
        if config.spm_model_file
        else {_VOCAB: config.vocab_file}
    )
    texts = {_ETC_CONFIG: config.etc_config.to_json_string(), _TASK_CONFIG: json.dumps(options)}
    with tempfile.TemporaryDirectory() as folder:
        files = {name: pathlib.Path(folder, name) for name in texts}
        for name, path in files.items():
            path.write_text(texts[name], encoding="utf-8")
        return serving.export_saved_model(
            model,
            directory,
            features=inputs.PADDING,
            assets={**vocabulary, **{name: str(path) for name, path in files.items()}},
        )


class HotpotQaPredictor:
    """Answers questions with an exported model.

    Args:
        directory: of the export, or a directory of numbered exports (the highest is taken).
        **options: replace options kept with the model, such as `supporting_fact_threshold`.
    Raises:
        ValueError: if there is no export with the files of this task.
    """

    def __init__(self, directory, **options):
        self._runner = serving.SavedModelRunner(directory)
        if not (self._runner.asset(_TASK_CONFIG) and self._runner.asset(_ETC_CONFIG)):
            raise ValueError(f"{directory!r} is no export of a HotpotQA model.")
        with tf.io.gfile.GFile(self._runner.asset(_TASK_CONFIG)) as file:
            kept = json.load(file)
        self._config = HotpotQaConfig(
            etc_config=modeling.EtcConfig.from_json_file(self._runner.asset(_ETC_CONFIG)),
            vocab_file=self._runner.asset(_VOCAB),
            spm_model_file=self._runner.asset(_SPM_MODEL),
            **{**kept, **options},
        )
        self._tokenizer = self._config.tokenizer()
        self._features = self._config.features(self._tokenizer)

    def predict(self, questions, batch_size=8):
        """Answers and supporting facts.

        Args:
            questions: iterable of `HotpotQAExample`s (`examples.read_examples`), or of dicts in the
                dataset's format; answers are not needed.
            batch_size: int.
        Returns:
            The official prediction format: {"answer": {id: str}, "sp": {id: [[title, index], …]}}.
        Raises:
            ValueError: naming the example, if one is malformed.
        """
        questions = [
            examples.parse_example(question) if isinstance(question, dict) else question
            for question in questions
        ]
        features = (
            examples.make_features(question, self._features, self._tokenizer).features
            for question in questions
        )
        outputs = self._runner(features, batch_size)
        return decode.generate_predictions(
            outputs, questions, self._tokenizer, self._config.decoding()
        )

    def predict_one(self, question):
        """(answer, [[title, sentence index], …]) for one question, as in `predict`."""
        prediction = self.predict([question])
        (example_id,) = prediction["answer"]
        return prediction["answer"][example_id], prediction["sp"][example_id]

    @property
    def config(self):
        """The model's options: its `HotpotQaConfig`."""
        return self._config
