"""The pairs of models that `peers` compares."""

import contextlib
import dataclasses
import operator
import os
import pathlib
import sys

from etcmodel.tools.benchmarks import turns
from etcmodel.tools.benchmarks.worker import num_global_tokens, num_heads

__all__ = ["MAKERS", "Files"]

_VOCABULARY_SIZE = 50265
_FIRST_ORDINARY_ID = 3


def _worker(name, kind, phases, **settings):
    """One of our systems, as a `turns.Worker`."""
    script = pathlib.Path(__file__).with_name("peers_worker.py")
    return turns.script_worker(script, name, sys.executable, kind, phases, settings)


def _longformer_config(length, options):
    """dict, of a `LongformerConfig` without dropout."""
    return {
        "vocab_size": _VOCABULARY_SIZE,
        "hidden_size": options.hidden_size,
        "num_hidden_layers": options.num_hidden_layers,
        "num_attention_heads": num_heads(options.hidden_size),
        "intermediate_size": 4 * options.hidden_size,
        "max_position_embeddings": max(length, options.window) + 2,
        "type_vocab_size": 1,
        "attention_window": options.window,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    }


def _bigbird_config(length, options):
    """dict, of a `BigBirdConfig` without dropout."""
    return {
        "vocab_size": _VOCABULARY_SIZE,
        "hidden_size": options.hidden_size,
        "num_hidden_layers": options.num_hidden_layers,
        "num_attention_heads": num_heads(options.hidden_size),
        "intermediate_size": 4 * options.hidden_size,
        "max_position_embeddings": length,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    }


def _modernbert_config(length, options):
    """dict, of a `ModernBertConfig`: its base model has 22 layers where BERT's has 12."""
    return {
        "hidden_size": options.hidden_size,
        "num_hidden_layers": 22 * options.num_hidden_layers // 12,
        "num_attention_heads": num_heads(options.hidden_size),
        "intermediate_size": 3 * options.hidden_size // 2,
        "max_position_embeddings": max(length, 8192),
        "skip_padding": options.shortest < 1,
    }


def _stacks(options):
    """dict: sizes of the encoder and the decoder, by the names of their configs."""
    return {
        f"{stack}_{name}": value
        for stack in ("encoder", "decoder")
        for name, value in (
            ("layers", options.num_hidden_layers),
            ("attention_heads", num_heads(options.hidden_size)),
            ("ffn_dim", 4 * options.hidden_size),
        )
    }


def _led_config(length, options):
    """dict, of an `LedConfig` without dropout."""
    return {
        **_stacks(options),
        "vocab_size": _VOCABULARY_SIZE,
        "d_model": options.hidden_size,
        # Hugging Face's pads to a multiple of the window.
        "max_encoder_position_embeddings": length + -length % options.window,
        "max_decoder_position_embeddings": max(1024, options.num_generated),
        "attention_window": options.window,
        "dropout": 0.0,
    }


def _bigbird_pegasus_config(length, options):
    """dict, of a `BigBirdPegasusConfig` without dropout."""
    return {
        **_stacks(options),
        "vocab_size": _VOCABULARY_SIZE,
        "d_model": options.hidden_size,
        "max_position_embeddings": length,
        "dropout": 0.0,
    }


def _longt5_config(length, options):
    """dict, of a `LongT5Config` without dropout, as of its base models."""
    del length  # Positions have no table.
    return {
        "vocab_size": _VOCABULARY_SIZE,
        "d_model": options.hidden_size,
        "d_ff": 8 * options.hidden_size // 3,
        "num_layers": options.num_hidden_layers,
        "num_heads": num_heads(options.hidden_size),
        "feed_forward_proj": "gated-gelu",
        "encoder_attention_type": "transient-global",
        "decoder_start_token_id": 0,
        "dropout_rate": 0.0,
    }


def _pegasus_x_config(length, options):
    """dict, of a `PegasusXConfig` without dropout, as of its base models."""
    return {
        **_stacks(options),
        "vocab_size": _VOCABULARY_SIZE,
        "d_model": options.hidden_size,
        "max_position_embeddings": length,
        "activation_function": "relu",
        "num_global_tokens": 128,
        "dropout": 0.0,
    }


def _generation(options):
    """dict, arguments of `generate` of both sides. No sequence may end early."""
    return {
        "num_beams": options.num_beams,
        "max_length": options.num_generated + 1,
        "min_length": options.num_generated + 1,
        "no_repeat_ngram_size": 3,
        "length_penalty": 1.0,
        "early_stopping": False,
        "num_return_sequences": options.num_beams,
    }


@dataclasses.dataclass(frozen=True)
class Files:
    """Where two models find what they share, and leave what they compute."""

    folder: str

    inputs = property(lambda self: os.path.join(self.folder, "inputs.npz"))
    weights = property(lambda self: os.path.join(self.folder, "weights"))

    def output(self, name):
        return os.path.join(self.folder, f"{name}.npy")

    def write_inputs(self, length, options):
        """Random ids, of which some are global, by the names of both sides' arguments.

        The first row has all tokens, the last the share of the shortest. Labels are what an
        encoder-decoder learns to generate.
        """
        import numpy as np

        random, rows = np.random.default_rng(0), options.rows
        ids = random.integers(_FIRST_ORDINARY_ID, _VOCABULARY_SIZE, [rows, length])
        lengths = np.linspace(length, max(1, length * options.shortest), rows).astype(int)
        is_global = np.broadcast_to(np.arange(length) % options.tokens_per_global == 0, ids.shape)
        labels = [rows, options.num_generated]
        np.savez(
            self.inputs,
            input_ids=ids,
            attention_mask=(np.arange(length) < lengths[:, np.newaxis]).astype(ids.dtype),
            global_attention_mask=is_global.astype(ids.dtype),
            labels=random.integers(_FIRST_ORDINARY_ID, _VOCABULARY_SIZE, labels),
        )

    def difference(self, *names):
        """The largest one of the values of two outputs: float, infinite for other shapes."""
        import numpy as np

        one, other = (np.load(self.output(name)) for name in names)
        return float(np.abs(one - other).max()) if one.shape == other.shape else float("inf")


def _beside_hugging_face(kind, config, files, options, phases, **settings):
    """(ours, Hugging Face's), of the same weights, and what their outputs differ by."""
    phases = (*phases, "write")
    shared = {"folder": files.weights, "inputs": files.inputs, **settings}
    ours = _worker("ours", kind, phases, config=config, output=files.output(0), **shared)
    other = turns.torch_worker(
        "Hugging Face",
        options.torch_python,
        f"stored_{kind}",
        phases,
        output=files.output(1),
        **shared,
    )
    return _written((ours, other)), files.difference(0, 1)


def _written(workers):
    """The workers, after each wrote what it computes; ended if one could not.

    The first comes first: the other reads its weights.
    """
    with contextlib.ExitStack() as stack:
        for worker in workers:
            stack.callback(worker.close)
            worker.measure("write")
        stack.pop_all()
    return workers


def _phases_of_encoder(options):
    return tuple(phase for phase in options.phases if phase != "generate")


def _encoder(kind, config_of):
    """The maker of a pair of encoders."""

    def make(length, files, options):
        config, phases = config_of(length, options), _phases_of_encoder(options)
        workers, difference = _beside_hugging_face(kind, config, files, options, phases)
        return workers, phases, difference

    return make


def _encoder_decoder(kind, config_of):
    """The maker of a pair of encoder-decoders that generate."""

    def make(length, files, options):
        config = config_of(length, options)
        phases = tuple("encode" if phase == "forward" else phase for phase in options.phases)
        workers, difference = _beside_hugging_face(
            kind, config, files, options, phases, generation=_generation(options)
        )
        return workers, phases, difference

    return make


def _beside_full_attention(make, name, kind, python_of):
    """The maker of ETC and a model of another library that has full attention."""

    def pair(length, files, options):
        del files  # Nothing is shared.
        phases = _phases_of_encoder(options)
        sizes = {
            "length": length,
            "batch": options.rows,
            "layers": options.num_hidden_layers,
            "hidden": options.hidden_size,
        }
        global_length = options.global_length or num_global_tokens(length)
        ours = turns.tensorflow_worker("ETC", "etc", phases, global_length=global_length, **sizes)
        return (ours, make(name, python_of(options), kind, phases, **sizes)), phases, None

    return pair


def _embeddings(length, files, options):
    phases = ("encode", "write")
    settings = {
        "folder": options.text_encoder,
        "documents": options.documents,
        "max_length": length,
        "batch_size": options.batch_size,
    }
    ours = _worker("ours", "text_encoder", phases, output=files.output(0), **settings)
    other = turns.torch_worker(
        "sentence-transformers",
        options.torch_python,
        "text_encoder",
        phases,
        output=files.output(1),
        **settings,
    )
    return _written((ours, other)), ("encode",), files.difference(0, 1)


def _with_gaps(length, files, options):
    config, phases = _longformer_config(length, options), _phases_of_encoder(options)
    workers = [
        _worker(
            f"dilation {dilation}",
            "longformer",
            phases,
            config={**config, "attention_dilation": dilation},
            folder="",
            inputs=files.inputs,
            output="",
        )
        for dilation in (options.dilation, 1)
    ]
    return workers, phases, None


def _gmat(length, files, options):
    phases = _phases_of_encoder(options)
    sizes = {"layers": options.num_hidden_layers, "hidden": options.hidden_size}
    config = {
        "hidden_size": options.hidden_size,
        "num_hidden_layers": options.num_hidden_layers,
        "num_attention_heads": num_heads(options.hidden_size),
        "intermediate_size": 4 * options.hidden_size,
        "vocab_size": _VOCABULARY_SIZE,
        "chunk_size": options.window,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    }
    workers = [
        _worker("GMAT", "gmat", phases, config=config, inputs=files.inputs),
        turns.tensorflow_worker(
            "BERT on chunks",
            "bert",
            phases,
            length=options.window,
            batch=options.rows * length // options.window,
            dropout=0.0,
            **sizes,
        ),
    ]
    return workers, phases, None


# By name, functions of length, `Files` and `PeersOptions` that return two `turns.Worker`s, their
# phases, and what their outputs differ by, or None.
MAKERS = {
    "longformer": _encoder("longformer", _longformer_config),
    "bigbird": _encoder("bigbird", _bigbird_config),
    "modernbert": _encoder("modernbert", _modernbert_config),
    "led": _encoder_decoder("led", _led_config),
    "bigbird_pegasus": _encoder_decoder("bigbird_pegasus", _bigbird_pegasus_config),
    "longt5": _encoder_decoder("longt5", _longt5_config),
    "pegasus_x": _encoder_decoder("pegasus_x", _pegasus_x_config),
    "bert": _beside_full_attention(
        turns.torch_worker, "Hugging Face", "bert", operator.attrgetter("torch_python")
    ),
    **{
        f"keras_hub_{kind}": _beside_full_attention(
            turns.keras_hub_worker, "keras-hub", kind, operator.attrgetter("keras_hub_python")
        )
        for kind in ("bert", "roformer")
    },
    "embeddings": _embeddings,
    "dilation": _with_gaps,
    "gmat": _gmat,
}
