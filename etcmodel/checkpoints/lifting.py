"""Initializes ETC from BERT and RoBERTa (paper, section 3.6 and appendix D)."""

import re

import numpy as np

from etcmodel.checkpoints import bert as bert_lib
from etcmodel.checkpoints import coverage, sources
from etcmodel.checkpoints import names as names_lib
from etcmodel.checkpoints.coverage import LoadReport
from etcmodel.models.config import EtcConfig
from etcmodel.shown_values import listed

# If ETC has separate weights for long and global tokens, both get BERT's.
_ORIGINS = tuple(
    (re.compile(rf"(?:.*/)?{pattern}"), origin)
    for pattern, origin in (
        (r"token_emb_lookup/embedding_table", bert_lib.TOKENS),
        (r"segment_emb_lookup/embedding_table", bert_lib.TOKEN_TYPES),
        (r"position_emb_lookup_(?:long|global)/embedding_table", bert_lib.POSITIONS),
        (r"(?:long|global)_emb_layer_norm/(\w+)", r"embeddings/LayerNorm/\1"),
        (
            r"fused_att_layer_(\d+)/fused_global_local_att/\w+_(query|key|value)_projection"
            r"/linear/(\w+)",
            r"encoder/layer_\1/attention/self/\2/\3",
        ),
        (
            r"fused_att_layer_(\d+)/fused_global_local_att/\w+_output_projection/(\w+)",
            r"encoder/layer_\1/attention/output/dense/\2",
        ),
        (
            r"fused_att_layer_(\d+)/layer_norm_[01]/(\w+)",
            r"encoder/layer_\1/attention/output/LayerNorm/\2",
        ),
        (
            r"\w*feed_forward_layer_(\d+)/dense_layers/layer_0/(\w+)",
            r"encoder/layer_\1/intermediate/dense/\2",
        ),
        (
            r"\w*feed_forward_layer_(\d+)/dense_layers/layer_1/(\w+)",
            r"encoder/layer_\1/output/dense/\2",
        ),
        (
            r"\w*feed_forward_layer_(\d+)/layer_norm/(\w+)",
            r"encoder/layer_\1/output/LayerNorm/\2",
        ),
        # The head for masked tokens, of models that have one.
        (r"mlm/transform/(dense|LayerNorm)/(\w+)", r"cls/predictions/transform/\1/\2"),
        (r"mlm/bias", bert_lib.MASKED_LM_BIAS),
    )
)
_OF_TOKENS = (bert_lib.TOKENS, bert_lib.MASKED_LM_BIAS)  # With a row for each token.
_ROBERTA_FIRST_POSITION = 2
# Not every kind of BERT has them; one whose config has the entry does.
_EXPENDABLE = {
    re.compile(r"(?:.*/)?segment_emb_lookup\w*/\w+"): "type_vocab_size",
    re.compile(r"(?:.*/)?position_emb_lookup\w*/\w+"): "max_position_embeddings",
}


def lift_bert(model, checkpoint, *, token_rows=None):
    """Initializes an ETC model from the weights of BERT or RoBERTa.

    Token embeddings, layer normalization and all weights of the transformer layers are copied;
    weights that ETC has separately for long and for global tokens get BERT's both times. Absolute
    positions are copied if the model has tables for them; longer tables repeat them (Longformer's
    recipe: Beltagy et al. 2020, section 5). Token types: all rows if the tables have equal sizes; a
    single row, which RoBERTa adds to every token, is copied to every row; else the rows that both
    have. A head for masked tokens gets BERT's, if the checkpoint has one. Relative labels and all
    other heads keep their initial values; the pooler and the rest of BERT's own heads are not used.

    Args:
        model: a built `EtcModel`, or a task model that contains one.
        checkpoint: `Source`, or path as in `open_source`: original BERT (TF1), Hugging Face
            (safetensors; BERT or RoBERTa), or Model Garden (`tf.train.Checkpoint` of an encoder).
        token_rows: int [vocab_size], or None. For each of the model's token ids, the row of the
            checkpoint's table, or -1 for a row that keeps its initial values. None: row i is copied
            to row i, which needs tables of equal sizes.
    Returns:
        `LoadReport`; `loaded` and `not_in_checkpoint` have the model's names, `unused` has the
        checkpoint's.
    Raises:
        ValueError: if the checkpoint has no BERT, the model is not an ETC, the checkpoint lacks
            weights of the encoder, or sizes differ (naming all that differ); or if weights are not
            floats, or copies of them differ. The model is then unchanged.

    >>> from etcmodel import checkpoints
    >>> model = etcmodel.from_pretrained("my_bert")  # An ETC of the same sizes.
    >>> report = checkpoints.lift_bert(model, "my_bert/model.safetensors")
    >>> len(report.loaded), report.not_in_checkpoint[:1]
    (44, ())
    """
    source = sources.open_source(checkpoint)
    config = names_lib.encoder_of(model).config
    bert = _bert_of(source, config)
    _check_config(config, bert)
    bert.check()
    variables = names_lib.release_names(model)
    origins = {name: origin for name in variables if (origin := _origin(name)) in bert.names}
    values, notes = _fitted_values(bert, variables, origins, token_rows)
    not_in_checkpoint = tuple(name for name in variables if name not in origins)
    lost = _lost(model, bert, not_in_checkpoint)
    for name, value in values.items():
        variables[name].assign(value)
    used = {bert.names[origin] for origin in origins.values()}
    return LoadReport(
        checkpoint=source.path,
        loaded=tuple(origins),
        not_in_checkpoint=not_in_checkpoint,
        unused=tuple(name for name in source.shapes if name not in used),
        training_state=source.training_state,
        origins={name: bert.names[origin] for name, origin in origins.items()},
        notes=(*notes, *_other_notes(config, bert, token_rows)),
        warnings=(
            *(f"the checkpoint lacks {name}: initial value" for name in lost),
            *_warnings(config, bert),
        ),
    )


def is_for(config, source):
    """Whether a source is of BERT or RoBERTa, and the config of an ETC: bool."""
    return config.model_type == EtcConfig.model_type and bert_lib.find_bert(source) is not None


def _bert_of(source, config):
    """The `BertWeights` of a source, for an encoder of this config.

    Raises:
        ValueError: if there is none, or the encoder is not an ETC.
    """
    bert = bert_lib.find_bert(source)
    if bert is None:
        raise ValueError(
            f"{source.path!r} holds no BERT or RoBERTa encoder. It has, for example, "
            f"{sorted(source.shapes)[:2]}."
        )
    if config.model_type != EtcConfig.model_type:
        raise ValueError(
            f"{source.path!r} is of BERT, whose weights are lifted into ETC only. The model is of "
            f"type {config.model_type!r}."
        )
    return bert


def _lost(model, bert, not_in_checkpoint):
    """Weights of the encoder that most BERTs have, but this one lacks: list of names.

    Raises:
        ValueError: naming missing weights that every BERT has, or this one by its config.
    """
    encoder = set(names_lib.encoder_variables(model))
    found = [x for x in not_in_checkpoint if x in encoder and not coverage.may_be_missing(x)]

    def is_needed(name):
        entries = [entry for pattern, entry in _EXPENDABLE.items() if pattern.fullmatch(name)]
        return not entries or bert.config.get(entries[0])

    if needed := list(filter(is_needed, found)):
        there, wanted = bert.num_hidden_layers, names_lib.encoder_of(model).config.num_hidden_layers
        number = f" It has {there} transformer layers, the model {wanted}." * (there != wanted)
        raise ValueError(
            f"{bert.source.path!r} has no weights for {listed(needed)}.{number} They would keep "
            "their initial values. Take a checkpoint that is whole."
        )
    return found


def _origin(name):
    """The original BERT's name of a variable's source, or None."""
    for pattern, origin in _ORIGINS:
        if match := pattern.fullmatch(name):
            return match.expand(origin)
    return None


def _check_config(config, bert):
    problems = []
    if config.use_pre_activation_order:
        problems.append(
            "`use_pre_activation_order` is on; BERT normalizes after each layer, so it must be off"
        )
    heads = bert.num_attention_heads
    for name, received in (
        ("num_hidden_layers", bert.num_hidden_layers),
        ("num_attention_heads", heads if heads is not None else config.num_attention_heads),
    ):
        if getattr(config, name) != received:
            problems.append(
                f"`{name}`: {getattr(config, name)} in the model, {received} in the checkpoint"
            )
    _raise_if(bert, problems)


def _raise_if(bert, problems):
    if problems:
        raise ValueError(
            f"{bert.source.path!r} does not fit the model's config: {listed(problems, '; ')}"
        )


def _fitted_values(bert, variables, origins, token_rows):
    """Values of the model's variables by name, and notes on those copied in part."""
    values, notes, problems = {}, [], []
    for name, origin in origins.items():
        initial, value = variables[name].numpy(), bert.read(origin)
        fitted, note = _fitted(origin, initial, value, bert.is_roberta, token_rows)
        if fitted.shape != initial.shape:
            problems.append(
                f"{name}: {list(initial.shape)} in the model, {list(value.shape)} in the "
                f"checkpoint's {bert.names[origin]}"
            )
            if origin == bert_lib.TOKENS and fitted.shape[1:] == initial.shape[1:]:
                problems[-1] += "; map one vocabulary to the other (`token_rows`)"
        else:
            values[name] = fitted.astype(initial.dtype)
            notes += [f"{name}: {note}"] if note else []
    _raise_if(bert, problems)
    return values, notes


def _fitted(origin, initial, value, is_roberta, token_rows):
    """A weight with the rows that the model has, if it is a table, and a note or None."""
    if value.shape[1:] != initial.shape[1:]:
        return value, None
    if origin in _OF_TOKENS and token_rows is not None:
        return _mapped_rows(initial, value, token_rows)
    if origin == bert_lib.POSITIONS:
        return _repeated_rows(initial, value[_ROBERTA_FIRST_POSITION if is_roberta else 0 :])
    if origin == bert_lib.TOKEN_TYPES:
        if len(value) == 1 < len(initial):
            return np.repeat(value, len(initial), axis=0), "the checkpoint's only row in every row"
        return _first_rows(initial, value)
    return value, None


def _mapped_rows(initial, value, token_rows):
    rows = np.asarray(token_rows)
    if rows.shape != (len(initial),) or rows.max() >= len(value) or rows.min() < -1:
        raise ValueError(
            f"`token_rows` must hold, for each of the model's {len(initial)} tokens, -1 or a row "
            f"below {len(value)}. Received: shape {list(rows.shape)}, values from {rows.min()} to "
            f"{rows.max()}"
        )
    is_known = rows >= 0
    mapped = np.array(initial)
    mapped[is_known] = value[rows[is_known]]
    return mapped, f"{is_known.sum()} of {len(rows)} rows lifted, by vocabulary"


def _first_rows(initial, value):
    """Copies the rows that both have; the others keep their initial values."""
    num_rows = min(len(value), len(initial))
    rows = np.concatenate([value[:num_rows], initial[num_rows:]])
    if len(value) == len(initial):
        return rows, None
    return rows, (
        f"rows 0 to {num_rows - 1} of {len(initial)} lifted ({len(value)} in the checkpoint)"
    )


def _repeated_rows(initial, value):
    """Repeats the rows from the first one, as many as the model has."""
    if len(value) >= len(initial):
        return _first_rows(initial, value)
    note = f"rows from {len(value)} on repeat the {len(value)} of the checkpoint"
    return value[np.arange(len(initial)) % len(value)], note


def _warnings(config, bert):
    """Possible mismatches that shapes do not show."""
    if bert.num_attention_heads is None:
        yield "the checkpoint does not tell its number of attention heads; the model's is assumed"
    is_hugging_face = bert.source.format == sources.SAFETENSORS
    activation = bert_lib.activation(bert.config, is_hugging_face)
    if activation != config.hidden_act:
        small = {activation, config.hidden_act} == {"gelu", "gelu_exact"}
        yield (
            f"the checkpoint's activation is {activation!r}, the model's `hidden_act` "
            f"{config.hidden_act!r}" + " (they differ by at most 5e-4)" * small
        )


def _other_notes(config, bert, token_rows):
    """Differences that always exist and that shapes do not show."""
    epsilon = bert.config.get("layer_norm_eps", 1e-12)
    if epsilon != config.layer_norm_epsilon:
        yield (
            f"the checkpoint's layer normalization adds {epsilon} to the variance, the model's "
            f"{config.layer_norm_epsilon}"
        )
    if bert.is_roberta and token_rows is None:
        yield "row i of RoBERTa's table is row i of the model's: token ids must be RoBERTa's own"
