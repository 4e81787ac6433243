"""The grids of the paper's own sweeps (appendix C, "Fine-Tuning" of each data set)."""

import dataclasses

from etcmodel.tools.sweeps.space import Choices

__all__ = ["PRESETS", "Preset"]


@dataclasses.dataclass(frozen=True)
class Preset:
    """A sweep of the paper.

    Attributes:
        program: str. The name of the data set's program in `etcmodel train`.
        space: dict of an option to its `Choices`.
    """

    program: str
    space: dict[str, Choices]


def _preset(program, rates, epochs, batch_sizes, **others):
    values = {
        "learning_rate": rates,
        "num_train_epochs": epochs,
        "train_batch_size": batch_sizes,
        **others,
    }
    return Preset(program, {name: Choices(tuple(x)) for name, x in values.items()})


_FINE = (1e-5, 2e-5, 3e-5, 4e-5, 5e-5)
_TENTHS = tuple(tenth / 10 for tenth in range(11))
PRESETS = {
    "hotpotqa": _preset(
        "hotpotqa", (3e-5, 5e-5), (3, 5, 7, 9), (32, 64), supporting_fact_threshold=_TENTHS
    ),
    # The paper gives the threshold only for the base models.
    "hotpotqa_large": _preset(
        "hotpotqa", (1e-5, 2e-5, 3e-5, 5e-5, 7e-5), (2, 5, 9, 13), (32, 64, 128)
    ),
    "nq": _preset("nq", (3e-5, 5e-5), (3, 5), (64,)),
    "nq_large": _preset("nq", (3e-5, 5e-5), (2, 3), (64,)),
    "openkp": _preset("openkp", (3e-5, 5e-5), (2, 3), (64,)),
    "wikihop": _preset("wikihop", _FINE, (5, 10, 15), (64,)),
    "wikihop_large": _preset("wikihop", _FINE[1:], (5, 10), (64,)),
}
