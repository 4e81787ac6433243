"""The cost of ETC: operations, and memory fitted to measurements (benchmarks/RESULTS.md)."""

import dataclasses

__all__ = ["Costs", "forward_flops"]

_FLOAT = 4  # Bytes.
# Of the measured peaks of TensorFlow processes on a CPU; numbers of floats are for each token and
# unit of the hidden size.
_PROCESS, _PROCESS_BY_HIDDEN = 1.0e9, 0.25e6  # Bytes: what there is without any token.
_FORWARD = 20  # Floats that the widest moment of a forward pass holds.
_KEPT_BY_LAYER = 17  # Floats that a layer keeps for the backward pass.
_KEPT_BESIDE = 7  # Floats that are kept outside of the layers.
_CHECKPOINT = 2.1  # Floats that a layer keeps if it is computed again.
_RECOMPUTED = 20.4  # Floats of the one layer that is being computed again, and around it.
_PASSES = {"forward": 1, "train": 3, "checkpointed": 4}  # Backward counts twice.


def forward_flops(length, global_length, *, radius, layers, hidden, intermediate):
    """Floating-point operations of a forward pass of unshared ETC, two for a multiply and add.

    Counted are matrix products: all projections of both inputs, the feed-forward layers, and query
    by key and probability by value over exactly the pairs within reach. Labels, normalization and
    the like are not counted; neither are pairs computed only to be masked.

    Args:
        length, global_length: int. Long and global tokens.
        radius: int. Number of long tokens attended to on each side.
        layers: int.
        hidden: int. Size of both inputs, and of all heads together.
        intermediate: int. Size inside of the feed-forward layers.
    """
    # Of each input: query, key, value, output, and key and value for the other one.
    projections = (4 + 2) * (length + global_length) * hidden * hidden
    feed_forward = 2 * (length + global_length) * hidden * intermediate
    pairs = length * (2 * radius + 1 + global_length) + global_length * (global_length + length)
    return 2 * layers * (projections + feed_forward + 2 * pairs * hidden)


@dataclasses.dataclass(frozen=True)
class Costs:
    """The costs of one model.

    Attributes:
        num_parameters: int.
        config: `EtcConfig`.
        slots: int. Number of floats that the optimizer stores for each parameter: 2 for AdamW and
            LAMB.
    """

    num_parameters: int
    config: object
    slots: int = 2

    def flops(self, length, global_length, batch=1):
        """Operations of a forward pass: int. See `forward_flops`."""
        config = self.config
        return batch * forward_flops(
            length,
            global_length,
            radius=config.local_radius,
            layers=config.num_hidden_layers,
            hidden=config.hidden_size,
            intermediate=config.intermediate_size,
        )

    def step_flops(self, phase, length, global_length, batch=1):
        """Operations of a phase, as `num_bytes` names them, with both passes: int."""
        return _PASSES[phase] * self.flops(length, global_length, batch)

    @property
    def gradient_bytes(self):
        """Bytes that several devices sum in a step, a float for each parameter: int."""
        return _FLOAT * self.num_parameters

    def moved_bytes(self, phase, tokens):
        """Minimum memory traffic of a training step, in bytes: float.

        What layers keep is written once and read once. Weights are read in both passes and by the
        optimizer, as are gradients once they are written; its own floats are read and written.

        Args:
            phase: "train" or "checkpointed".
            tokens: int. Long and global tokens of a batch.
        """
        layers, hidden = self.config.num_hidden_layers, self.config.hidden_size
        by_layer = {"train": _KEPT_BY_LAYER, "checkpointed": _CHECKPOINT}[phase]
        by_token = 2 * (by_layer * layers + _KEPT_BESIDE) * hidden
        passes = _PASSES[phase] - 1
        by_parameter = passes + 2 + 2 + 2 * self.slots  # Passes, gradient, update, moments.
        return _FLOAT * (by_token * tokens + by_parameter * self.num_parameters)

    def num_bytes(self, phase, tokens):
        """Peak memory of a process: float.

        Args:
            phase: "forward", "train" or "checkpointed", a training step that computes each layer
                again for its gradients.
            tokens: int. Long and global tokens of a batch.
        """
        fixed, by_token = self._parts(phase)
        return fixed + by_token * tokens

    def most_tokens(self, phase, num_bytes):
        """Maximum number of tokens, long and global of a batch, in this memory: int; 0 if none."""
        fixed, by_token = self._parts(phase)
        return max(int((num_bytes - fixed) / by_token), 0)

    def _parts(self, phase):
        """(bytes without tokens, bytes of each token)."""
        layers, hidden = self.config.num_hidden_layers, self.config.hidden_size
        weights = _FLOAT * self.num_parameters
        copies = 1 if phase == "forward" else 2 + self.slots  # With the gradients.
        floats = {
            "forward": _FORWARD,
            "train": _KEPT_BY_LAYER * layers + _KEPT_BESIDE,
            "checkpointed": _CHECKPOINT * layers + _RECOMPUTED,
        }[phase]
        fixed = _PROCESS + _PROCESS_BY_HIDDEN * hidden + copies * weights
        return fixed, floats * hidden * _FLOAT
