"""What holds for the heads of every encoder of one text; their values are in tests/reference."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from tests.models import text_heads
from tests.models.bigbird import small as bigbirds
from tests.models.gmat import small as gmats
from tests.models.longformer import small as longformers
from tests.models.longt5 import models as longt5s
from tests.models.modernbert import small as modernberts
from tests.models.random_weights import randomize

pytestmark = pytest.mark.slow_cases(6)  # The rest in the exhaustive suite.
IDS = text_heads.with_separators(gmats.ids(2, 7))
ONE_LAYER = {"num_hidden_layers": 1}


class System(NamedTuple):
    """Heads of a system on a small encoder, in one of its ways.

    Attributes:
        prefix: str. What the names of its classes begin with.
        config: a config.
        of_tokens: dict of arguments to what they are for each token, where a head has other
            defaults than the encoder.
    """

    prefix: str
    config: object
    of_tokens: Mapping = {}


SYSTEMS = {
    "Longformer": System(
        "Longformer",
        longformers.config(**ONE_LAYER, attention_window=4),
        {"global_attention_mask": [1, 0, 0, 0, 1, 0, 0]},
    ),
    "BigBird": System(
        "BigBird",
        bigbirds.config(**ONE_LAYER, sep_token_id=text_heads.SEPARATOR),
        {"token_type_ids": [0, 0, 0, 1, 1, 1, 1]},
    ),
    "ModernBERT": System("ModernBert", modernberts.config(**ONE_LAYER)),
    "GMAT": System("Gmat", gmats.config(**ONE_LAYER)),
    "GMAT, no memory": System("Gmat", gmats.config(**ONE_LAYER, num_memory_tokens=0)),
    "GMAT, compressed": System("Gmat", gmats.config(**gmats.COMPRESSED)),
    "LongT5": System("LongT5", longt5s.config(num_layers=1)),
}
CASES = {
    f"{name}, {case}": (name, *values)
    for name, system in SYSTEMS.items()
    for case, values in text_heads.cases(system.prefix, IDS).items()
}


def every_head(*systems):
    """Of the systems, or of all, each with each head."""
    names = [name for name, (system, *_) in CASES.items() if not systems or system in systems]
    return pytest.mark.parametrize("case", names)


def model_of(case):
    system, kind, settings, *_ = CASES[case]
    model = kind(SYSTEMS[system].config, **settings)
    randomize(model)
    return model


@pytest.mark.quick_cases(3)
@every_head()
def test_it_learns_and_comes_back_from_a_folder(case, tmp_path):
    model, (*_, features, labels) = model_of(case), CASES[case]
    text_heads.check_learns(model, features, labels, is_eager=case != "Longformer, tokens")
    text_heads.check_comes_back(model, features, tmp_path)


@pytest.mark.quick_cases(5)
@every_head(*[name for name in SYSTEMS if name != "LongT5"])  # Its encoder gives a dict.
@pytest.mark.parametrize("wish", ["output_hidden_states", "output_attentions"])
def test_what_is_asked_for_comes_beside_what_the_head_gives(case, wish):
    """And is what the encoder gives."""
    system, _, _, ids, _ = CASES[case]
    model = model_of(case)
    of_tokens = {key: np.resize(x, ids.shape) for key, x in SYSTEMS[system].of_tokens.items()}
    batch = {"input_ids": ids, **of_tokens}
    plain, outputs = model(batch), model(batch, **{wish: True})
    plain = plain if isinstance(plain, dict) else {"logits": plain}
    flat = {key: x.reshape([-1, 7]) for key, x in batch.items()}
    *_, observed = model.encoder(**flat, **{wish: True})
    assert outputs.keys() == {*plain, *observed}
    for one, other in zip(
        *(
            tf.nest.flatten({key: x[key] for key in outputs})
            for x in (outputs, {**plain, **observed})
        ),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, atol=1e-5)
