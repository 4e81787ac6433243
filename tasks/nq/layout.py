"""The features of a window: CLS, the question, SEP, a part of the page, SEP, padding.

The global input is a token for CLS and each question token (SEP included) and one for each
candidate in the window; with `fixed_blocks`, it has one token per block of long tokens.
"""

from etcmodel.preprocessing.padding import padded

__all__ = ["window_features"]


def window_features(page, window, config):
    """The features of one window, padded (L long tokens, G global tokens).

    Args:
        page: a `Page`.
        window: a `Window` of it.
        config: an `NqInputConfig`.

    Returns:
        (features, num_left_out): num_left_out is the number of candidates without room for their
        global token; features is a dict from str to list of int:
            unique_ids: [1], the example's id; question_ids: all, not padded.
            token_ids: [L]. 0 is padding.
            token_pos, candidate_ids: [L]. Each token's word and candidate on the page; else -1.
            sentence_ids: [L]. The global token that a long token is linked to; -1 for none.
            long_breakpoints, global_breakpoints: [L], [G]. 1 at the last real token.
            global_token_ids, global_type_id: [G]. 0 is padding.
            global_candidate_ids: [G]. The candidate of a global token; else -1.
            global_token_pos_start, global_token_pos_end: [G]. Its first and last word; else 0.
            la_start, la_end, sa_start, sa_end: [1]. Ends of the answers in the long input; 0, the
                CLS token, for an end outside the window.
            la_global: [1]. The global token of the long answer's candidate (or block), or 0.
            answer_type: [1]. Of `ANSWER_TYPES`.
        With `fixed_blocks`, the features of the candidates' words and ids are left out.
    """
    num_before = len(page.input_question_ids) + 2
    part = slice(window.first, window.end)
    token_ids = [config.cls_token_id, *page.input_question_ids, config.sep_token_id]
    token_ids += page.token_ids[part]
    token_ids.append(config.sep_token_id)
    num_real, length = len(token_ids), config.long_seq_length
    outside = [-1] * num_before
    candidate_ids = page.candidate_ids[part]
    make_globals = _block_globals if config.fixed_blocks else _candidate_globals
    sentence_ids, global_features, num_left_out = make_globals(
        page, num_before, candidate_ids, num_real, config
    )
    breakpoints = [0] * length
    breakpoints[num_real - 1] = 1
    labels = _labels(window, num_before)
    features = {
        "unique_ids": [page.example_id],
        "question_ids": page.question_ids,
        "token_ids": padded(token_ids, length),
        "token_pos": padded(outside + page.token_pos[part], length, -1),
        "candidate_ids": padded(outside + candidate_ids, length, -1),
        "sentence_ids": sentence_ids,
        "long_breakpoints": breakpoints,
        **global_features,
        **labels,
        "la_global": [_global_of_answer(labels, sentence_ids, config)],
        "answer_type": [window.answer_type],
    }
    return features, num_left_out


def _labels(window, num_before):
    labels = {}
    for name, span in (("la", window.long), ("sa", window.short)):
        for side, token in zip(("start", "end"), span, strict=True):
            labels[f"{name}_{side}"] = [0 if token is None else num_before + token]
    return labels


def _global_of_answer(labels, sentence_ids, config):
    """For the long answer's first token in the window; the release considers only its start."""
    position = labels["la_start"][0]
    if not config.release_compatible:
        position = position or labels["la_end"][0]
    return max(0, sentence_ids[position]) if position else 0


def _candidate_globals(page, num_before, candidate_ids, num_real, config):
    """Links of the long tokens, global features, number of candidates left out."""
    length, global_length = config.long_seq_length, config.global_seq_length
    in_window = list(dict.fromkeys(candidate_ids))
    kept = in_window[: global_length - num_before]
    num_global = num_before + len(kept)
    number_of = {candidate: num_before + index for index, candidate in enumerate(kept)}
    type_of_candidate, type_of_cls, type_of_question = config.global_token_types
    if config.release_compatible:
        # In the release, SEP and padding are linked to a padding token, which counts as real; or to
        # the last token before the page, where the window shows none of the page.
        missing = min(num_global, global_length - 1) if kept else num_before - 1
        last_global = missing
    else:
        missing, last_global = -1, num_global - 1
    sentence_ids = list(range(num_before))
    sentence_ids += [number_of.get(candidate, missing) for candidate in candidate_ids]
    breakpoints = [0] * global_length
    breakpoints[last_global] = 1
    question = [config.question_global_token_id] * (num_before - 1)
    types = [type_of_cls] + [type_of_question] * len(question) + [type_of_candidate] * len(kept)
    nothing = [0] * num_before
    spans = [page.candidate_words[candidate] for candidate in kept]
    global_token_ids = [config.cls_token_id, *question]
    global_token_ids += [config.candidate_global_token_id] * len(kept)
    global_features = {
        "global_token_ids": padded(global_token_ids, global_length),
        "global_breakpoints": breakpoints,
        "global_type_id": padded(types, global_length),
        "global_candidate_ids": padded([-1] * num_before + kept, global_length, -1),
        "global_token_pos_start": padded(nothing + [s for s, _ in spans], global_length),
        "global_token_pos_end": padded(nothing + [e for _, e in spans], global_length),
    }
    return padded(sentence_ids, length, missing), global_features, len(in_window) - len(kept)


def _block_globals(page, num_before, candidate_ids, num_real, config):
    """The same, with a global token for each block of long tokens."""
    del page
    size, global_length = config.fixed_block_size, config.global_seq_length
    num_blocks = -(-num_real // size)
    breakpoints = [0] * global_length
    breakpoints[num_blocks - 1] = 1
    type_of_block, type_of_cls, type_of_question = config.global_token_types
    types = padded([type_of_block] * num_blocks, global_length)
    if config.release_compatible:
        # There the types are those of the candidates' layout, and of another length.
        types = [type_of_cls] + [type_of_question] * (num_before - 1)
        if candidate_ids:
            types += [type_of_block] * len(set(candidate_ids)) + [0]
        types = types[:global_length] + [0] * (global_length - num_blocks)
    token_ids = [config.candidate_global_token_id] * num_blocks
    global_features = {
        "global_token_ids": padded(token_ids, global_length),
        "global_breakpoints": breakpoints,
        "global_type_id": types,
    }
    sentence_ids = [position // size for position in range(num_real)]
    padding = -1
    if config.release_compatible:  # There the first padding token belongs to a block as well.
        sentence_ids = [*sentence_ids, num_real // size][: config.long_seq_length]
        padding = 0
    return padded(sentence_ids, config.long_seq_length, padding), global_features, 0
