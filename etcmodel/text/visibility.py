"""Which tokens of a batch may attend to which others, and as what.

The rules are those of `ops.structure.GlobalLocalStructure`, on NumPy arrays.
"""

import dataclasses

import numpy as np

from etcmodel import attention_picture
from etcmodel.ops.relation_labels import RelationLabels

__all__ = ["Rules", "numbering_of", "pair_labels"]

_MASKED = attention_picture.MASKED


@dataclasses.dataclass(frozen=True)
class Rules:
    """What of a model's config decides who sees whom.

    Attributes:
        local_radius: int. Long tokens visible on each side.
        relative_pos_max_distance: int. Positions are clipped here.
        use_hard_g2l_mask, use_hard_l2g_mask: bool. Global (long) tokens see only the long (global)
            tokens that they are linked to.
    """

    local_radius: int = 84
    relative_pos_max_distance: int = 12
    use_hard_g2l_mask: bool = False
    use_hard_l2g_mask: bool = False

    @classmethod
    def of(cls, config):
        """Those of a model or its config, or the default ones of None."""
        names = (field.name for field in dataclasses.fields(cls))
        config = _config_of(config)
        return cls(**{name: getattr(config, name) for name in names if hasattr(config, name)})

    @staticmethod
    def check_relations(model, names):
        """Raises ValueError if a model, or its config, has other relations than these, or no room.

        A config, or an encoder, does not name relations; it tells how many labels there are.
        """
        ours = getattr(model, "relation_names", None)
        if ours is not None and tuple(ours) != tuple(names):
            raise ValueError(
                f"The model's `relation_names` are {list(ours)}, those of the batch {list(names)}; "
                "explain a batch of the model's own processor"
            )
        config = _config_of(model)
        if names and hasattr(config, "relation_labels"):
            config.relation_labels(*names)


def _config_of(model):
    encoder = getattr(model, "encoder", model)
    return getattr(encoder, "config", encoder)


def pair_labels(batch, row, rules):
    """The relative label of every pair of tokens of a row.

    Args:
        batch: `ProcessedBatch`.
        row: int.
        rules: `Rules`.
    Returns:
        dict of int arrays [queries, keys] by piece ("g2g", "g2l", "l2g", "l2l"), -1 where the query
        may not attend to the key. Relations have the labels of `config.relation_labels`.
    """
    numbering = numbering_of(batch, rules)
    examples, global_examples = batch["example_ids"][row], batch["global_example_ids"][row]
    long_places, global_places = (np.arange(len(x)) for x in (examples, global_examples))
    l2l = _positions(long_places, numbering.max_distance)
    is_far = np.abs(long_places[:, np.newaxis] - long_places) > rules.local_radius
    is_linked = batch["links"][row][:, np.newaxis] == global_places
    l2g = np.where(is_linked, numbering.linked, numbering.cross)
    g2g = _positions(global_places, numbering.max_distance)
    for name in batch.relation_names:
        for kind, labels in (("edges", g2g), ("links", l2g), ("long_edges", l2l)):
            if (key := f"{kind}/{name}") in batch:
                first, second = batch[key][row][batch[key][row][:, 0] >= 0].T
                labels[first, second] = numbering[name]
    is_same = examples[:, np.newaxis] == global_examples
    g2l = np.where(is_same & (is_linked | (not rules.use_hard_g2l_mask)), l2g, _MASKED).T
    return {
        "g2g": np.where(global_examples[:, np.newaxis] == global_examples, g2g, _MASKED),
        "g2l": g2l,
        "l2g": np.where(is_same & (is_linked | (not rules.use_hard_l2g_mask)), l2g, _MASKED),
        "l2l": np.where((examples[:, np.newaxis] == examples) & ~is_far, l2l, _MASKED),
    }


def numbering_of(batch, rules):
    return RelationLabels(rules.relative_pos_max_distance, names=tuple(batch.relation_names))


def _positions(places, max_distance):
    offsets = np.clip(places - places[:, np.newaxis], -max_distance, max_distance)
    return np.where(offsets >= 0, offsets, max_distance - offsets)
