"""The padding examples that fill up batches in records of the release."""

from etcmodel.tasks.wikihop import features


def padding_features(config):
    """Features without any text: only what the layout fills every input up with."""
    empty = features.InputLayout(config, tokenizer=None, example_id="padding")
    return {"is_real_example": [0], "label_id": [0.0], **empty.features()}
