"""The rows of the tables: which ingredient each of them changes (paper, tables 2 to 4)."""

import dataclasses

__all__ = ["KINDS", "ROWS", "Row"]

KINDS = ("range", "structure")  # Of the data.

_TOKENS = ("token_ids",)
_UNLINKED = ("token_ids", "global_token_ids")
_LINKED = (*_UNLINKED, "links")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row:
    """A row of a table.

    Attributes:
        changes: dict of entries of the encoder's config.
        features: tuple of str. What the model is given.
    """

    changes: dict = dataclasses.field(default_factory=dict)
    features: tuple[str, ...] = _LINKED


_NO_HARD_G2L = {"use_hard_g2l_mask": False}
_SHARED = {"share_qkv_projections": True, "share_att_output_projection": True}
ROWS = {
    "ETC": Row(),
    "no hard g2l": Row(changes=_NO_HARD_G2L),
    "shared": Row(changes=_SHARED),
    "larger radius": Row(changes={"local_radius": 4}),
    "larger vocabulary": Row(changes={"relative_pos_max_distance": 8, "relative_vocab_size": 20}),
    "fixed blocks": Row(changes={"global_block_length": 8}, features=_TOKENS),
    "flat": Row(changes=_NO_HARD_G2L, features=_UNLINKED),
    "no global tokens": Row(changes={"global_block_length": 0}, features=_TOKENS),
}
