"""Writes a run's texts, attention, graph and hyperparameters for TensorBoard."""

import io
import os

import numpy as np
import tensorflow as tf
from absl import logging

from etcmodel import inspection
from etcmodel.models import padding
from etcmodel.pictures import style
from etcmodel.training import callbacks, saving, trainer
from etcmodel.training.task import TrainDataRequest

FOLDER = "extras"  # Beside "train" and "eval"; TensorBoard shows it as a run of that name.
_NUM_SAMPLES = 5
_MOST_CHARACTERS = 500  # Per text.
_MOST_TOKENS = 128  # In a picture; with more, a token would be narrower than a pixel.
_OF_TEXT = ("input_ids", "attention_mask")


class TensorBoardExtras(callbacks.Callback):
    """Writes the graph and the options once, texts and attention after each evaluation.

    Args:
        task: Task.
        config: TrainingConfig.
        model: the task's model.
        averaged: function that returns a context in which the model has the weights that are saved.
    """

    def __init__(self, task, config, model, averaged):
        self._task, self._config, self._model, self._averaged = task, config, model, averaged
        self._writer = self._example = None
        self._has_texts = self._has_attention = True
        with style.drawing():  # Fails before the first step if Matplotlib is missing.
            pass

    def on_summary(self, step, metrics):
        if self._writer is None:
            self._begin()

    def on_evaluation(self, step, metrics):
        if self._writer is None:
            self._begin()
        name = self._task.best_metric
        with self._writer.as_default(step):
            if name:
                value = saving.read_best(self._config.output_dir)
                tf.summary.scalar(f"best/{name}", metrics[name] if value is None else value)
            if self._has_texts:
                self._show_texts()
            if self._has_attention:
                self._draw_attention()
        self._writer.flush()

    def on_end(self, step, metrics):
        if self._writer is not None:
            self._writer.close()

    def _begin(self):
        self._writer = tf.summary.create_file_writer(os.path.join(self._config.output_dir, FOLDER))
        from tensorboard.plugins.hparams import api

        with self._writer.as_default(0):
            if name := self._task.best_metric:
                metric = api.Metric(f"best/{name}", display_name=f"best {name}")
                api.hparams_config(hparams=[], metrics=[metric])
            api.hparams(_plain({**self._task.run_config(), **self._config.result_fields()}))
            tf.summary.graph(self._graph())
        self._writer.flush()

    def _graph(self):
        """The graph of one call of the model with one example."""
        spec = self._task.train_dataset(TrainDataRequest(global_batch_size=1)).element_spec
        select = self._task.model_features

        def call(features):  # The name of the graph's inputs, too.
            return trainer.call_model(self._model, features, training=False, select=select)

        return tf.function(call).get_concrete_function(spec).graph

    def _show_texts(self):
        try:
            rows = self._task.text_samples(_NUM_SAMPLES)
        except ValueError as error:  # Gold files for metrics need not contain the texts.
            self._has_texts = False
            logging.info("No predictions for TensorBoard: %s", error)
            return
        if rows:
            tf.summary.text("predictions", tf.constant(_table(rows)))

    def _draw_attention(self):
        try:
            with self._averaged():
                rows = _attention_rows(self._model, self._first_example())
        except ValueError as error:  # The model's attention cannot be inspected.
            self._has_attention = False
            logging.info("No attention for TensorBoard: %s", error)
            return
        tf.summary.image("attention", _picture(*rows)[np.newaxis])

    def _first_example(self):
        if self._example is None:
            (features,) = self._task.eval_dataset(1).take(1)
            self._example = self._task.model_features(self._model, features, training=False)
        return self._example


def _table(rows):
    """Texts as a table: list of lists of str."""
    clipped = [[" ".join(text.split())[:_MOST_CHARACTERS] for text in row] for row in rows]
    return [["input", "prediction", "right answer"], *clipped]


def _plain(options):
    """The options that are numbers or strings."""
    return {name: x for name, x in options.items() if isinstance(x, (bool, int, float, str))}


def _attention_rows(model, inputs):
    """What the first long tokens attend to in the last layer, averaged over the heads.

    Args:
        model: as in `inspection.attention`.
        inputs: dict of tensors [1, ...].
    Returns:
        (layer, dict from the side of the keys to float32 [queries, keys]). The first tokens of each
        side.
    """
    generator = getattr(model, "generator", None)
    if generator is not None:  # The task model generates in a graph, which cannot be inspected.
        model, inputs = generator, padding.cut_text({name: inputs[name] for name in _OF_TEXT})
    num_layers, _ = inspection.calls.sizes_of(inspection.calls.encoder_of(model))
    layer = num_layers - 1
    names = ("long_token_ids", "token_ids", "input_ids")
    ids = next((inputs[name] for name in names if name in inputs), None)
    length = _MOST_TOKENS if ids is None else min(_MOST_TOKENS, ids.shape[1])
    (found,) = inspection.attention(
        model,
        inputs,
        layers=[layer],
        heads=[inspection.MEAN],
        queries={"long": range(length)},
    )
    rows = [found.dense(query, inspection.MEAN) for query in range(length)]
    sides = {side: np.stack([row[side][:_MOST_TOKENS] for row in rows]) for side in rows[0]}
    return layer, {side: values for side, values in sides.items() if values.size}


def _picture(layer, sides):
    """uint8 [height, width, 3]; darker is more attention."""
    with style.drawing():
        from matplotlib import colors, figure, image

        shades = colors.LinearSegmentedColormap.from_list(
            "attention", [style.LIGHT.background, style.LIGHT.series[0], style.LIGHT.ink]
        )
        widths = [values.shape[1] + 8 for values in sides.values()]
        drawing = figure.Figure(figsize=(9, 6), layout="constrained")
        panels = drawing.subplots(1, len(sides), squeeze=False, width_ratios=widths)[0]
        norm = colors.PowerNorm(0.5, 0, 1)  # Otherwise all but the highest would be white.
        for panel, (side, values) in zip(panels, sides.items(), strict=True):
            drawn = panel.imshow(
                values, cmap=shades, norm=norm, aspect="auto", interpolation="none"
            )
            panel.set(xlabel=f"{side} tokens")
            panel.grid(visible=False)
        panels[0].set_ylabel("long tokens that look")
        drawing.colorbar(drawn, ax=list(panels), label="probability, mean of the heads")
        drawing.suptitle(f"Attention, layer {layer}: darker is more", x=0.01, ha="left")
        buffer = io.BytesIO()
        drawing.savefig(buffer, format="png", dpi=100)
        buffer.seek(0)
        return (image.imread(buffer)[..., :3] * 255).round().astype(np.uint8)
