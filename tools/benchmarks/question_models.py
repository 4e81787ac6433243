"""Initial models for learning from a few HotpotQA questions."""

import etcmodel
from etcmodel.tools.benchmarks import question_pretraining

__all__ = ["PRETRAINED", "make"]

PRETRAINED = "pretrained"
# What HotpotQA's inputs have beyond BERT's: relations, token types, sentences' own global tokens.
_STRUCTURE = {
    "relative_pos_max_distance": 12,
    "relative_vocab_size": 32,
    "segment_vocab_size": 16,
    "use_hard_g2l_mask": True,
    # A few hundred steps are too few to overfit, and go faster without.
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
# Initial logits of attention's preferences; 245 questions are too few to learn them.
_LINK_LOGIT, _SAME_PARAGRAPH_LOGIT = 2.0, 1.0
_EDGE_LOGITS = {"same_word_in_paragraph": 2.0, "same_word": 3.0, "title": 3.0, "title_back": 3.0}


def _prefer_structure(encoder):
    """Makes attention initially prefer links and edges, as BERT has not learned any labels."""
    from etcmodel.models import initialization
    from etcmodel.tasks.hotpotqa import model

    labels = encoder.config.relation_labels(*model.EDGE_LABELS)
    initialization.prefer_labels(
        encoder,
        {labels.linked: _LINK_LOGIT},
        global_logits={
            **dict.fromkeys(range(labels.num_positions), _SAME_PARAGRAPH_LOGIT),
            **{labels[name]: logit for name, logit in _EDGE_LOGITS.items()},
        },
        embedding_scale=0.0,
    )


def make(options, folder, train, *, has_pretrained):
    """Writes the initial models, unless they exist.

    Args:
        options: `real_questions.RealQuestionsOptions`.
        folder: pathlib.Path, of which each gets a folder of its name.
        train: list of dict, the questions on whose paragraphs one is pre-trained.
        has_pretrained: bool. Whether that one is wanted.
    """
    if not (folder / "random" / "config.json").exists():
        import tf_keras  # Imports TensorFlow, which takes seconds.

        from etcmodel.models import encoders

        lifted = etcmodel.from_pretrained(
            options.bert, local_radius=options.local_radius, **_STRUCTURE
        )
        tf_keras.utils.set_random_seed(0)
        random_model = encoders.build_encoder(lifted.config)
        for name, encoder in (("lifted", lifted), ("random", random_model)):
            _prefer_structure(encoder)
            encoder.save_pretrained(str(folder / name), lifted.processor)
    if has_pretrained and not (folder / PRETRAINED / "config.json").exists():
        question_pretraining.pretrain(
            train,
            folder / "lifted",
            folder / PRETRAINED,
            folder / "pretraining",
            num_steps=options.num_pretrain_steps,
            learning_rate=options.pretrain_learning_rate,
            mixed_precision=options.mixed_precision,
        )
