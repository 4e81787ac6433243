"""Prompts are continued: as slow twins do that compute all tokens anew for each further one."""

import numpy as np
import pytest
import tensorflow as tf

from etcmodel.generation import sampling as filters
from tests.models.gmat import genbert
from tests.models.led import models as leds
from tests.models.longt5 import models
from tests.models.pegasus_x import models as pegasus_xs

pytestmark = pytest.mark.usefixtures("eagerly")
END, PADDING = 1, 0
MODEL = models.model(encoder_attention_type="local", num_layers=1, scale_decoder_outputs=False)
IDS = models.ids(2, 9)
PROMPTS = np.array([[0, 7, 8], [0, 12, 5]], np.int32)


def next_logits(model, ids, sequences):
    """Logits after each sequence, float32 [rows, vocab_size], of the whole model."""
    return model(tf.constant(ids), decoder_input_ids=np.array(sequences))["logits"][:, -1]


def slow_rows(model, prompts, max_length, end=END, **options):
    """Greedy search, or sampling of `num_return_sequences` rows an input."""
    count = options.get("num_return_sequences", 1)
    ids, rows = np.repeat(IDS, count, 0), np.repeat(prompts, count, 0).tolist()
    done = [False] * len(rows)
    while len(rows[0]) < max_length and not all(done):
        logits = next_logits(model, ids, rows)
        if options.get("do_sample"):
            logits = filters.filtered(logits, options["temperature"], 50)
            seed = [options["seed"], len(rows[0])]
            noise = tf.random.stateless_uniform(logits.shape, seed, minval=1e-20, maxval=1.0)
            logits -= tf.math.log(-tf.math.log(noise))
        for place, token in enumerate(np.argmax(logits, -1).tolist()):
            rows[place].append(PADDING if done[place] else token)
            done[place] |= token == end
    return rows


def slow_beams(model, ids, prompt, max_length, num_beams, penalty, end=END):
    """Beam search for one input: list of (score, tokens), the best first."""
    running, finished = [(0.0, list(prompt))], []
    while running[0][1:] and len(running[0][1]) < max_length:
        rows = [tokens for _, tokens in running]
        logits = next_logits(model, np.repeat(ids, len(rows), 0), rows)
        log_probs = tf.nn.log_softmax(logits).numpy()
        candidates = [
            (score + log_probs[place, token], [*tokens, token])
            for place, (score, tokens) in enumerate(running)
            for token in range(log_probs.shape[1])
        ]
        candidates = sorted(candidates, key=lambda x: -x[0])[: 2 * num_beams]
        count = len(rows[0]) + 1 - len(prompt)  # New tokens of a candidate.
        for place, (score, tokens) in enumerate(candidates):
            ends = tokens[-1] == end or len(tokens) == max_length
            if ends and place < num_beams:
                finished.append((score / count**penalty, tokens))
        finished = sorted(finished, key=lambda x: -x[0])[:num_beams]
        goes_on = [x for x in candidates if x[1][-1] != end and len(x[1]) < max_length]
        running = goes_on[:num_beams] or [(-np.inf, rows[0])]
        worst = finished[-1][0] if len(finished) == num_beams else -np.inf
        if not goes_on or running[0][0] / count**penalty <= worst:
            break
    return finished


def padded(rows, length):
    return [[*row, *[PADDING] * (length - len(row))] for row in rows]


def check_beams(model, prompts, max_length, num_beams, count, penalty, end=END):
    found = model.generate(
        IDS,
        decoder_input_ids=prompts,
        max_length=max_length,
        num_beams=num_beams,
        num_return_sequences=count,
        length_penalty=penalty,
        eos_token_id=end,
        pad_token_id=PADDING,
        **NOTHING_FORCED,
    )
    wanted = [
        pair
        for ids, prompt in zip(IDS, prompts.tolist(), strict=True)
        for pair in slow_beams(model, ids[None], prompt, max_length, num_beams, penalty, end)[
            :count
        ]
    ]
    length = max(len(tokens) for _, tokens in wanted)
    assert found["sequences"].numpy().tolist() == padded([x for _, x in wanted], length)
    scores = [score for score, _ in wanted]
    np.testing.assert_allclose(found["sequences_scores"], scores, atol=2e-4)


NOTHING_FORCED = {"forced_bos_token_id": None, "forced_eos_token_id": None}


def test_a_greedy_search_continues_prompts():
    found = MODEL.generate(IDS, decoder_input_ids=PROMPTS, max_length=7, with_scores=True)
    wanted = slow_rows(MODEL, PROMPTS, 7)
    assert found["sequences"].numpy().tolist() == wanted
    first = next_logits(MODEL, IDS, PROMPTS)
    np.testing.assert_allclose(found["step_scores"][:, 0], first, atol=1e-4)


@pytest.mark.slow
def test_what_was_generated_is_a_prompt_that_is_continued_alike():
    whole = MODEL.generate(IDS, max_length=9)["sequences"].numpy()
    for length in (1, 2, 5):
        prompt = whole[:, :length]
        again = MODEL.generate(IDS, decoder_input_ids=prompt, max_length=9)["sequences"]
        np.testing.assert_array_equal(again, whole)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize(("count", "penalty"), [(1, 1.0), (3, 1.7)])
def test_beams_continue_prompts(count, penalty):
    check_beams(MODEL, PROMPTS, 7, 3, count, penalty)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("count", [1, 3])
def test_samples_continue_prompts(count):
    options = {"do_sample": True, "temperature": 2.0, "seed": 5, "num_return_sequences": count}
    found = MODEL.generate(IDS, decoder_input_ids=PROMPTS, max_length=7, **options)["sequences"]
    assert found.numpy().tolist() == slow_rows(MODEL, PROMPTS, 7, **options)


def test_a_batch_has_prompts_beside_its_labels():
    batch = {"input_ids": IDS, "decoder_input_ids": PROMPTS, "labels": PROMPTS}
    batch["decoder_attention_mask"] = np.ones_like(PROMPTS)
    found = MODEL.generate(batch, max_length=6)["sequences"].numpy()
    assert found.tolist() == slow_rows(MODEL, PROMPTS, 6)


def test_prompts_without_the_start_token_get_it():
    wanted = MODEL.generate(IDS, decoder_input_ids=PROMPTS, max_length=6)["sequences"]
    found = MODEL.generate(IDS, decoder_input_ids=PROMPTS[:, 1:], max_length=6)["sequences"]
    np.testing.assert_array_equal(found, wanted)


def test_the_start_token_is_that_of_the_call():
    options = {"max_length": 6, "decoder_start_token_id": 5}
    wanted = MODEL.generate(IDS, decoder_input_ids=PROMPTS + [5, 0, 0], **options)["sequences"]
    found = MODEL.generate(IDS, decoder_input_ids=PROMPTS[:, 1:], **options)["sequences"]
    np.testing.assert_array_equal(found, wanted)
    no_start = models.model(num_layers=1, decoder_start_token_id=None)
    with pytest.raises(ValueError, match="The config has no `decoder_start_token_id`"):
        no_start.generate(IDS, decoder_input_ids=PROMPTS)


@pytest.mark.slow
def test_new_tokens_are_those_behind_the_prompt():
    never = models.VOCAB_SIZE  # No token of the model's.
    for options, new in (({}, 20), ({"max_length": None}, 20), ({"max_new_tokens": 4}, 4)):
        found = MODEL.generate(IDS, decoder_input_ids=PROMPTS, eos_token_id=never, **options)
        assert found["sequences"].shape == (2, 3 + new)
    options = {"min_length": 7, "max_new_tokens": 4}
    assert MODEL.generate(IDS, decoder_input_ids=PROMPTS, **options)["sequences"].shape == (2, 7)
    found = MODEL.generate(IDS, decoder_input_ids=PROMPTS, min_new_tokens=4, max_new_tokens=4)
    assert not (found["sequences"][:, 3:-1] == END).numpy().any()


@pytest.mark.slow
@pytest.mark.usefixtures("in_graphs")
def test_a_graph_continues_prompts_too():
    def run(prompts):
        return MODEL.generate(IDS, decoder_input_ids=prompts, max_length=6)["sequences"]

    traced = tf.function(run, autograph=False)
    np.testing.assert_array_equal(traced(tf.constant(PROMPTS)), run(PROMPTS))
    with pytest.raises(tf.errors.InvalidArgumentError, match="begin with `decoder_start_token_id"):
        traced(tf.constant(PROMPTS + 1))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"decoder_input_ids": PROMPTS[0]}, r"`decoder_input_ids` must have shape \[batch, prompt"),
        ({"decoder_input_ids": PROMPTS[:1]}, "`decoder_input_ids` must have shape"),
        ({"decoder_input_ids": PROMPTS[:, :0]}, "`decoder_input_ids` must have at least one token"),
        ({"decoder_input_ids": PROMPTS + 20}, "`decoder_input_ids` must be .* below 30, which is"),
        ({"decoder_input_ids": [[0, 7], [7, 7]]}, "`decoder_input_ids` must all begin with"),
        ({"max_length": 3}, "`max_length` must be above the length of the prompt.* Received: 3"),
        ({"decoder_attention_mask": [[0, 1, 1], [1] * 3]}, "`decoder_attention_mask` must be all"),
    ],
)
def test_prompts_that_cannot_be_continued_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        MODEL.generate(IDS, **{"decoder_input_ids": PROMPTS, "max_length": 6, **changes})


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["led", "pegasus_x", "gmat"])
@pytest.mark.slow_cases(1)
def test_all_systems_continue_prompts(kind):
    model = {"led": leds.model, "pegasus_x": pegasus_xs.model, "gmat": genbert.model}[kind]()
    start = model.generation_settings().decoder_start_token_id
    prompts = np.concatenate([np.full([2, 1], start, np.int32), PROMPTS[:, 1:]], 1)
    options = {"max_length": 8, "eos_token_id": END, "pad_token_id": PADDING, **NOTHING_FORCED}
    found = model.generate(IDS, decoder_input_ids=prompts, **options)["sequences"]
    assert found.numpy().tolist() == slow_rows(model, prompts, 8)
    check_beams(model, prompts, 6, 2, 2, 1.5)
