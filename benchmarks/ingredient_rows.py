"""The rows of the tables: which ingredient each of them changes (paper, tables 2 to 4)."""

import dataclasses

__all__ = ["FIGURES", "KINDS", "LENGTHS", "ROWS", "TEST_SEED", "Row"]

_TOKENS = ("token_ids",)
_UNLINKED = ("token_ids", "global_token_ids")
_LINKED = (*_UNLINKED, "links")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row:
    """A row of a table.

    Attributes:
        changes: dict of entries of the encoder's config.
        features: tuple of str. What the model is given.
        is_pretrained: bool. Of `meaning`: whether there is pre-training.
        pretraining: dict. Options of that pre-training, as of `WindowsTask`.
    """

    changes: dict = dataclasses.field(default_factory=dict)
    features: tuple[str, ...] = _LINKED
    is_pretrained: bool = True
    pretraining: dict = dataclasses.field(default_factory=dict)


_NO_HARD_G2L = {"use_hard_g2l_mask": False}
_SHARED = {"share_qkv_projections": True, "share_att_output_projection": True}
_COMMON = {
    "ETC": Row(),
    "no hard g2l": Row(changes=_NO_HARD_G2L),
    "shared": Row(changes=_SHARED),
    "larger radius": Row(changes={"local_radius": 4}),
    "larger vocabulary": Row(changes={"relative_pos_max_distance": 8, "relative_vocab_size": 20}),
}
_INPUTS = {
    "fixed blocks": Row(changes={"global_block_length": 8}, features=_TOKENS),
    "flat": Row(changes=_NO_HARD_G2L, features=_UNLINKED),
    "no global tokens": Row(changes={"global_block_length": 0}, features=_TOKENS),
}
_PRETRAINING = {
    "no CPC": Row(pretraining={"cpc_weight": 0.0}),
    "no pre-training": Row(is_pretrained=False),
    "CPC of weight 0.02": Row(pretraining={"cpc_weight": 0.02}),
    "CPC of rising weight": Row(pretraining={"cpc_warmup_steps": 200}),
    "CPC at temperature 0.3": Row(pretraining={"cpc_temperature": 0.3}),
    "CPC at temperature 3": Row(pretraining={"cpc_temperature": 3.0}),
    "CPC of projections": Row(pretraining={"cpc_projection_size": 32, "cpc_temperature": 0.1}),
}
# Labels of links stay, those of distances go.
_NO_POSITIONS = {"relative_pos_max_distance": 0}
# By the kind of data: tokens of its training, and the more tokens that are measured, too.
LENGTHS = {"length": (128, 1024), "longer": (512, 4096)}


def _of_positions(longest):
    absolute = {**_NO_POSITIONS, "max_absolute_position_embeddings": longest}
    return {
        "relative positions": Row(),
        "absolute positions": Row(changes=absolute),
        "no positions": Row(changes=_NO_POSITIONS),
    }


# By the kind of data: dict of a row's name to the row.
KINDS = {
    "range": {**_COMMON, **_INPUTS},
    "structure": {**_COMMON, **_INPUTS},
    "meaning": {**_COMMON, **_PRETRAINING},
    **{kind: _of_positions(longest) for kind, (_, longest) in LENGTHS.items()},
}
ROWS = tuple(dict.fromkeys(name for rows in KINDS.values() for name in rows))
# By the kind of data: the columns of its table.
FIGURES = {
    "range": ("accuracy",),
    "structure": ("accuracy",),
    "meaning": ("accuracy", "mlm_loss", "mlm_accuracy", "cpc_accuracy"),
    **{kind: tuple(f"accuracy at {x}" for x in lengths) for kind, lengths in LENGTHS.items()},
}
TEST_SEED = 1_000_000  # Of what is measured on; seeds of training are below it.
