"""Inputs of the multi-paragraph tasks, HotpotQA and WikiHop (paper, appendix C)."""

import dataclasses

import tensorflow as tf

from etcmodel import feature_utils
from etcmodel.models import input_utils

__all__ = ["InputConfig", "InputFeatures", "make_global_local_transformer_side_inputs"]

SENTENCE_GLOBAL_TOKEN_ID = 1
CPC_MASK_GLOBAL_TOKEN_ID = 2
QUESTION_GLOBAL_TOKEN_ID = 3
CANDIDATE_GLOBAL_TOKEN_ID = 4
PARAGRAPH_GLOBAL_TOKEN_ID = 5

GLOBAL_TOKEN_TYPE_ID = 0
SENTENCE_TOKEN_TYPE_ID = 1
TITLE_TOKEN_TYPE_ID = 2
QUESTION_TOKEN_TYPE_ID = 3
CANDIDATE_TOKEN_TYPE_ID = 4


@dataclasses.dataclass
class InputConfig:
    """Lengths (in tokens) and special ids of a multi-paragraph input.

    `None` as a length means no limit.
    """

    global_seq_length: int | None
    long_seq_length: int | None
    is_training: bool = True
    debug: bool = True
    cls_token_id: int = 101
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
    """The features of one example, one entry a token."""

    long_token_ids: list[int] = dataclasses.field(default_factory=list)
    long_sentence_ids: list[int] = dataclasses.field(default_factory=list)
    long_paragraph_ids: list[int] = dataclasses.field(default_factory=list)
    long_paragraph_breakpoints: list[int] = dataclasses.field(default_factory=list)
    long_token_type_ids: list[int] = dataclasses.field(default_factory=list)
    global_token_ids: list[int] = dataclasses.field(default_factory=list)
    global_paragraph_breakpoints: list[int] = dataclasses.field(default_factory=list)
    global_token_type_ids: list[int] = dataclasses.field(default_factory=list)
    is_real_example: bool = True


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
    """Side inputs for one example of several paragraphs a row, padded on the right.

    Long tokens see, within the radius, their own paragraph; a long token is linked to the global
    tokens of its sentence and of its paragraph. Global tokens of different paragraphs get the
    label 2k + 3, where k is `relative_pos_max_distance` (see `input_utils` for the others).

    Args:
        long_paragraph_breakpoints: int [batch, long_len]. 1 at the last token of each paragraph.
        long_paragraph_ids: int [batch, long_len]. Index of the paragraph's global token, or -1.
        long_sentence_ids: int [batch, long_len]. Index of the sentence's global token, or -1.
        global_paragraph_breakpoints: int [batch, global_len]. 1 at the last global token of each
            paragraph.
        local_radius: int. Long tokens visible on each side.
        relative_pos_max_distance: int. 0 makes all labels None.
        use_hard_g2l_mask: bool. Global tokens see only the long tokens of their sentence or
            paragraph.
        ignore_hard_g2l_mask: int [batch, global_len] or None. 1 for global tokens that see all
            long tokens even so.
        use_hard_l2g_mask: bool. Long tokens see only the global tokens they are linked to.
        ignore_hard_l2g_mask: int [batch, long_len] or None. 1 for exceptions, as above.
        flat_sequence: bool. Ignores paragraphs (paper, table 3, "flat structure").
        l2g_linked_ids: int [batch, long_len] or None. A further global token to label as linked
            (a candidate's, at its mentions), or -1. The hard masks do not follow these links.
        name: name of the operation.
    Returns:
        `input_utils.GlobalLocalTransformerSideInputs`.
    """
    with tf.name_scope(name or "make_global_local_transformer_side_inputs"):
        long_paragraphs = feature_utils.segment_ids_from_breakpoints(long_paragraph_breakpoints)
        global_paragraphs = feature_utils.segment_ids_from_breakpoints(global_paragraph_breakpoints)
        # What lies after the last breakpoint is padding, which sees only padding.
        long_is_real = tf.cast(long_paragraphs > 0, tf.int32)
        global_is_real = tf.cast(global_paragraphs > 0, tf.int32)
        global_len = tf.shape(global_paragraphs)[1]

        structure = (
            [long_sentence_ids] if flat_sequence else [long_sentence_ids, long_paragraph_ids]
        )
        linked = input_utils.linked_pairs(structure, global_len)
        labelled = linked
        if l2g_linked_ids is not None:
            labelled |= input_utils.linked_pairs([l2g_linked_ids], global_len)
        l2g_labels = input_utils.l2g_relative_att_ids(labelled, relative_pos_max_distance)
        l2g_att_mask = input_utils.same_example_mask(long_is_real, global_is_real)
        g2l_att_mask = input_utils.transpose(l2g_att_mask)
        if use_hard_l2g_mask:
            l2g_att_mask = _harden_rows(l2g_att_mask, linked, ignore_hard_l2g_mask)
        if use_hard_g2l_mask:
            g2l_linked = input_utils.transpose(linked)
            g2l_att_mask = _harden_rows(g2l_att_mask, g2l_linked, ignore_hard_g2l_mask)

        return input_utils.GlobalLocalTransformerSideInputs(
            l2l_att_mask=feature_utils.make_local_segmented_att_mask(
                long_is_real if flat_sequence else long_paragraphs, local_radius
            ),
            g2g_att_mask=feature_utils.make_segmented_att_mask(global_is_real),
            l2g_att_mask=l2g_att_mask,
            g2l_att_mask=g2l_att_mask,
            l2l_relative_att_ids=input_utils.position_labels(
                long_paragraphs, relative_pos_max_distance, local_radius
            ),
            g2g_relative_att_ids=_g2g_relative_att_ids(
                global_paragraphs, relative_pos_max_distance, flat_sequence
            ),
            l2g_relative_att_ids=l2g_labels,
            g2l_relative_att_ids=input_utils.transpose(l2g_labels),
        )


def _harden_rows(att_mask, linked, ignored_rows):
    """Keeps of each row only the linked pairs, but leaves the ignored rows as they are."""
    hard = input_utils.harden(att_mask, linked)
    if ignored_rows is None:
        return hard
    return tf.where(tf.cast(ignored_rows, tf.bool)[:, :, tf.newaxis], att_mask, hard)


def _g2g_relative_att_ids(global_paragraphs, relative_pos_max_distance, flat_sequence):
    """Positions within a paragraph, and one label for all other paragraphs."""
    labels = input_utils.position_labels(global_paragraphs, relative_pos_max_distance)
    if labels is None or flat_sequence:
        return labels
    return feature_utils.overwrite_relative_att_ids_outside_segments(
        labels, global_paragraphs, overwrite_value=2 * relative_pos_max_distance + 3
    )
