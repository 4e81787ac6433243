"""Inputs of the multi-paragraph tasks, HotpotQA and WikiHop (paper, appendix C)."""

import dataclasses

import tensorflow as tf

from etcmodel import feature_utils
from etcmodel.models.side_inputs import side_inputs_of
from etcmodel.ops import argument_checks
from etcmodel.ops.structure import GlobalLocalStructure

__all__ = [
    "InputConfig",
    "InputFeatures",
    "make_global_local_transformer_side_inputs",
    "make_structure",
    "real_tokens",
    "structure_of",
]

# Ids of BERT's uncased vocabulary: [CLS], and words that it leaves unused.
CLS_TOKEN_ID = 101
SENTENCE_GLOBAL_TOKEN_ID = 1
CPC_MASK_GLOBAL_TOKEN_ID = 2
QUESTION_GLOBAL_TOKEN_ID = 3
CANDIDATE_GLOBAL_TOKEN_ID = 4
PARAGRAPH_GLOBAL_TOKEN_ID = 5
# Those that differ in the released SentencePiece vocabulary.
SENTENCEPIECE_DEFAULT_GLOBAL_TOKEN_IDS = {
    "CLS_TOKEN_ID": 40,
    "QUESTION_GLOBAL_TOKEN_ID": 41,
    "CANDIDATE_GLOBAL_TOKEN_ID": 42,
    "PARAGRAPH_GLOBAL_TOKEN_ID": 43,
}

GLOBAL_TOKEN_TYPE_ID = 0
SENTENCE_TOKEN_TYPE_ID = 1
TITLE_TOKEN_TYPE_ID = 2
QUESTION_TOKEN_TYPE_ID = 3
CANDIDATE_TOKEN_TYPE_ID = 4
# WikiHop's types of global tokens.
QUESTION_GLOBAL_TOKEN_TYPE_ID = 5
CANDIDATE_GLOBAL_TOKEN_TYPE_ID = 6
PARAGRAPH_GLOBAL_TOKEN_TYPE_ID = 7


@dataclasses.dataclass
class InputConfig:
    """Lengths (in tokens) and special ids of a multi-paragraph input.

    A length of `None` means no limit.

    >>> from etcmodel.models import multihop_utils
    >>> multihop_utils.InputConfig(global_seq_length=230, long_seq_length=4096).cls_token_id
    101
    """

    global_seq_length: int | None
    long_seq_length: int | None
    is_training: bool = True
    debug: bool = True
    cls_token_id: int = CLS_TOKEN_ID
    sentence_global_token_id: int = SENTENCE_GLOBAL_TOKEN_ID
    cpc_mask_global_token_id: int = CPC_MASK_GLOBAL_TOKEN_ID
    question_global_token_id: int = QUESTION_GLOBAL_TOKEN_ID
    candidate_global_token_id: int = CANDIDATE_GLOBAL_TOKEN_ID
    paragraph_global_token_id: int = PARAGRAPH_GLOBAL_TOKEN_ID
    global_token_type_id: int = GLOBAL_TOKEN_TYPE_ID
    sentence_token_type_id: int = SENTENCE_TOKEN_TYPE_ID
    title_token_type_id: int = TITLE_TOKEN_TYPE_ID
    question_token_type_id: int = QUESTION_TOKEN_TYPE_ID
    candidate_token_type_id: int = CANDIDATE_TOKEN_TYPE_ID


@dataclasses.dataclass
class InputFeatures:
    """The features of one example, with one entry per token.

    >>> from etcmodel.models import multihop_utils
    >>> features = multihop_utils.InputFeatures(long_token_ids=[2, 7, 3])
    >>> features.long_token_ids, features.is_real_example
    ([2, 7, 3], True)
    """

    long_token_ids: list[int] = dataclasses.field(default_factory=list)
    long_sentence_ids: list[int] = dataclasses.field(default_factory=list)
    long_paragraph_ids: list[int] = dataclasses.field(default_factory=list)
    long_paragraph_breakpoints: list[int] = dataclasses.field(default_factory=list)
    long_token_type_ids: list[int] = dataclasses.field(default_factory=list)
    global_token_ids: list[int] = dataclasses.field(default_factory=list)
    global_paragraph_breakpoints: list[int] = dataclasses.field(default_factory=list)
    global_token_type_ids: list[int] = dataclasses.field(default_factory=list)
    is_real_example: bool = True


def make_structure(
    long_paragraph_breakpoints,
    long_paragraph_ids,
    long_sentence_ids,
    global_paragraph_breakpoints,
    relative_pos_max_distance,
    use_hard_g2l_mask=False,
    ignore_hard_g2l_mask=None,
    use_hard_l2g_mask=False,
    ignore_hard_l2g_mask=None,
    flat_sequence=False,
    l2g_linked_ids=None,
):
    """Makes the structure of rows with one example of several paragraphs, padded on the right.

    Within the radius, long tokens attend to those of their own paragraph. A long token is linked to
    the global tokens of its sentence and of its paragraph. Pairs of global tokens of different
    paragraphs have the label `other_segment`.

    Args:
        long_paragraph_breakpoints: int [batch, long_len]. 1 at the last token of each paragraph.
        long_paragraph_ids: int [batch, long_len]. Index of the paragraph's global token, or -1.
        long_sentence_ids: int [batch, long_len]. Index of the sentence's global token, or -1.
        global_paragraph_breakpoints: int [batch, global_len]. As for the long tokens.
        relative_pos_max_distance: int, the model's; 0 for no labels.
        use_hard_g2l_mask: bool. Global tokens attend only to the long tokens linked to them.
        ignore_hard_g2l_mask: int [batch, global_len] or None. 1 for tokens exempt from that mask.
        use_hard_l2g_mask: bool. Long tokens attend only to the global tokens they are linked to.
        ignore_hard_l2g_mask: int [batch, long_len] or None. Likewise.
        flat_sequence: bool. Whether to ignore paragraphs (paper, table 3, "flat structure"), and
            with them both `ignore_hard_` masks and `l2g_linked_ids`: only sentences link tokens.
        l2g_linked_ids: int [batch, long_len] or None. A further linked global token, such as a
            candidate's for its mentions, or -1. The hard masks do not follow these links.
    Returns:
        `ops.structure.GlobalLocalStructure`.
    """
    long_paragraphs = _paragraphs("long", long_paragraph_breakpoints)
    global_paragraphs = _paragraphs("global", global_paragraph_breakpoints)
    # Tokens after the last breakpoint are padding, which attends only to padding.
    long_is_real = tf.cast(long_paragraphs > 0, tf.int32)
    flat = GlobalLocalStructure(
        long_segment_ids=long_is_real,
        long_example_ids=long_is_real,
        global_example_ids=tf.cast(global_paragraphs > 0, tf.int32),
        links=(_links("long_sentence_ids", long_sentence_ids),),
        max_distance=max(relative_pos_max_distance, 0),
        use_hard_g2l_mask=use_hard_g2l_mask,
        use_hard_l2g_mask=use_hard_l2g_mask,
    )
    if flat_sequence:
        return flat
    label_links = () if l2g_linked_ids is None else (_links("l2g_linked_ids", l2g_linked_ids),)
    return flat._replace(
        long_segment_ids=long_paragraphs,
        links=(*flat.links, _links("long_paragraph_ids", long_paragraph_ids)),
        label_links=label_links,
        global_segment_ids=global_paragraphs,
        ignore_hard_g2l_mask=ignore_hard_g2l_mask,
        ignore_hard_l2g_mask=ignore_hard_l2g_mask,
    )


def structure_of(features, encoder_config, **options):
    """Calls `make_structure` with a task's features, for a model of this config.

    Args:
        features: dict with the int [batch, len] arguments of `make_structure`, by their names.
        encoder_config: config with the model's `relative_pos_max_distance` and `use_hard_*_mask`.
        **options: the other arguments of `make_structure`.
    Returns:
        `ops.structure.GlobalLocalStructure`.
    """
    return make_structure(
        long_paragraph_breakpoints=features["long_paragraph_breakpoints"],
        long_paragraph_ids=features["long_paragraph_ids"],
        long_sentence_ids=features["long_sentence_ids"],
        global_paragraph_breakpoints=features["global_paragraph_breakpoints"],
        relative_pos_max_distance=encoder_config.relative_pos_max_distance,
        use_hard_g2l_mask=encoder_config.use_hard_g2l_mask,
        use_hard_l2g_mask=encoder_config.use_hard_l2g_mask,
        **options,
    )


def real_tokens(features):
    """Mask of the tokens that are not padding: those up to the last end of a paragraph.

    Args:
        features: dict with int [batch, len] `long_paragraph_breakpoints` and
            `global_paragraph_breakpoints`.
    Returns:
        (long, global): bool [batch, long_len] and [batch, global_len].
    """
    return tuple(
        _paragraphs(side, features[f"{side}_paragraph_breakpoints"]) > 0
        for side in ("long", "global")
    )


def _links(name, ids):
    return tf.saturate_cast(argument_checks.whole_ids(name, ids), tf.int32)


def _paragraphs(side, breakpoints):
    """The number of each token's paragraph: int32 [batch, len]; 0 for padding."""
    name = f"{side}_paragraph_breakpoints"
    return feature_utils.segment_ids_from_breakpoints(breakpoints, name=name)


def make_global_local_transformer_side_inputs(
    long_paragraph_breakpoints,
    long_paragraph_ids,
    long_sentence_ids,
    global_paragraph_breakpoints,
    local_radius,
    relative_pos_max_distance,
    use_hard_g2l_mask=False,
    ignore_hard_g2l_mask=None,
    use_hard_l2g_mask=False,
    ignore_hard_l2g_mask=None,
    flat_sequence=False,
    l2g_linked_ids=None,
    name=None,
):
    """Makes dense side inputs for `local_radius`: `make_structure` as masks and labels.

    >>> from etcmodel.models import multihop_utils
    >>> inputs = multihop_utils.make_global_local_transformer_side_inputs(
    ...     [[0, 0, 1]], [[0, 0, 0]], [[1, 1, 1]], [[1, 1]], 1, relative_pos_max_distance=3
    ... )
    >>> inputs.l2g_att_mask.numpy().tolist()
    [[[1, 1], [1, 1], [1, 1]]]
    """
    with tf.name_scope(name or "make_global_local_transformer_side_inputs"):
        structure = make_structure(
            long_paragraph_breakpoints,
            long_paragraph_ids,
            long_sentence_ids,
            global_paragraph_breakpoints,
            relative_pos_max_distance,
            use_hard_g2l_mask,
            ignore_hard_g2l_mask,
            use_hard_l2g_mask,
            ignore_hard_l2g_mask,
            flat_sequence,
            l2g_linked_ids,
        )
        return side_inputs_of(structure, local_radius)
