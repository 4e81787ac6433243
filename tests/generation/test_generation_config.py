"""What `generate` does by default: `generation_config.json`, and what a call says."""

import functools
import json
import shutil

import numpy as np
import pytest
import tensorflow as tf

import etcmodel
from etcmodel.generation import GenerationSettings
from etcmodel.models.seq2seq.generation_config import GenerationConfig
from tests.models.led import models as leds
from tests.models.longt5 import models
from tests.models.pegasus_x import models as pegasus_xs
from tests.reference import cases

pytestmark = pytest.mark.usefixtures("eagerly")  # Which settings count is seen without graphs.
BEAMS = {"num_beams": 3, "length_penalty": 2.0, "max_length": 7, "no_repeat_ngram_size": 2}


ONE_LAYER = {"encoder_layers": 1, "decoder_layers": 1}
# They are only read.
MODEL = functools.cache(lambda: models.model(num_layers=1))
PEGASUS = functools.cache(lambda: pegasus_xs.model(**ONE_LAYER))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    MODEL().save_pretrained(folder)
    return folder


@pytest.fixture
def folder(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "model")


def give(folder, **entries):
    (folder / "generation_config.json").write_text(json.dumps(entries))
    return etcmodel.load_pretrained(folder)


def settings_of(model, **given):
    return model.generation_settings(**given)


@pytest.mark.slow
def test_the_entries_of_the_file_are_those_of_a_call(folder):
    ids = models.ids(2, 9)
    plain = etcmodel.load_pretrained(folder)
    wanted, greedy = plain.generate(ids, **BEAMS), plain.generate(ids, max_length=7)
    model = give(folder, **BEAMS)
    found = model.generate(ids)
    assert set(found) == {"sequences", "sequences_scores"}
    for name, value in found.items():
        np.testing.assert_array_equal(value, wanted[name])
    found = model.generate(ids, num_beams=1, no_repeat_ngram_size=0)
    np.testing.assert_array_equal(found["sequences"], greedy["sequences"])


def test_what_a_call_says_wins_and_none_is_hugging_faces_default(folder):
    model = give(folder, **BEAMS, early_stopping=True, forced_eos_token_id=1)
    settings = settings_of(model, num_beams=2, max_length=None, forced_eos_token_id=None)
    assert settings.num_beams == 2 and settings.max_length == 21
    assert settings.early_stopping is True and settings.length_penalty == 2.0
    assert settings.forced_eos_token_id is None
    assert GenerationSettings().top_k == 50 and GenerationSettings().max_length == 21


def test_lengths_without_the_start_token(folder):
    model = give(folder, max_new_tokens=6, min_new_tokens=3, max_length=4)
    assert (settings_of(model).max_length, settings_of(model).min_length) == (7, 4)
    assert settings_of(model, max_length=5).max_length == 5
    assert settings_of(model, max_new_tokens=3).max_length == 4
    with pytest.raises(ValueError, match="`min_length` must be at most `max_length`.* 4, 3"):
        model.generate(models.ids(1, 9), max_new_tokens=2)
    assert settings_of(model, max_new_tokens=None).max_length == 4
    assert settings_of(model, max_new_tokens=None, max_length=None).max_length == 21
    # It counts alone, also if it is less.
    assert settings_of(give(folder, min_length=5, min_new_tokens=2)).min_length == 3
    found = model.generate(models.ids(1, 9), min_new_tokens=6, max_new_tokens=6)["sequences"]
    assert found.shape == [1, 7]


@pytest.mark.slow
def test_tokens_of_the_file_are_those_of_generation_alone(folder):
    model = give(folder, decoder_start_token_id=5, eos_token_id=[7], pad_token_id=3)
    sequences = model.generate(models.ids(3, 9), max_length=20)["sequences"].numpy()
    assert (sequences[:, 0] == 5).all() and model.config.eos_token_id == 1
    for row in sequences:
        if 7 in row:
            assert (row[list(row).index(7) + 1 :] == 3).all()
    started = model.generate(models.ids(3, 9), decoder_start_token_id=4)["sequences"]
    assert (started[:, 0].numpy() == 4).all()


def without_start(folder, **entries):
    """Leaves out the start token in a folder's `config.json`, as if it had the class's default."""
    path = folder / "config.json"
    kept = json.loads(path.read_text())
    kept.pop("decoder_start_token_id", None)
    path.write_text(json.dumps({**kept, **entries}))


@pytest.mark.parametrize("is_of_file", [True, False])
def test_a_start_token_that_hugging_face_takes_otherwise_is_asked_for(tmp_path, is_of_file):
    leds.model().save_pretrained(tmp_path)
    if is_of_file:
        (tmp_path / "generation_config.json").write_text('{"bos_token_id": 0, "num_beams": 2}')
    else:
        without_start(tmp_path, bos_token_id=0)
    model, ids = etcmodel.load_pretrained(tmp_path), leds.ids(1, 9)
    message = "`decoder_start_token_id` is missing .* begin with their `bos_token_id`, 0, .* says 2"
    for call in (model.generate, lambda ids: model.generate(ids, decoder_input_ids=[[2, 5]])):
        with pytest.raises(ValueError, match=message):
            call(ids)
    for start in (0, 2):
        given = {"decoder_start_token_id": start}
        of_model = settings_of(etcmodel.load_pretrained(tmp_path, **given))
        assert settings_of(model, **given).decoder_start_token_id == start
        assert of_model.decoder_start_token_id == start
    model.save_pretrained(tmp_path / "again")
    with pytest.raises(ValueError, match=message):
        etcmodel.load_pretrained(tmp_path / "again").generate(ids)


def test_a_start_token_of_which_all_say_the_same_needs_not_be_given(tmp_path):
    leds.model().save_pretrained(tmp_path)
    for entries in ({"bos_token_id": 2}, {"num_beams": 2}, {"bos_token_id": None}):
        assert settings_of(give(tmp_path, **entries)).decoder_start_token_id == 2
    (tmp_path / "generation_config.json").unlink()
    without_start(tmp_path, bos_token_id=2)
    model = etcmodel.load_pretrained(tmp_path)
    assert settings_of(model).decoder_start_token_id == 2 and model.generation_config is None


def test_an_older_folder_has_the_entries_in_its_config(folder, tmp_path):
    path = folder / "config.json"
    entries = {**json.loads(path.read_text()), "num_beams": 3, "max_length": 7, "n_positions": 9}
    path.write_text(json.dumps(entries))
    model = etcmodel.load_pretrained(folder)
    assert (settings_of(model).num_beams, settings_of(model).max_length) == (3, 7)
    model.save_pretrained(tmp_path / "again")
    written = json.loads((tmp_path / "again" / "generation_config.json").read_text())
    # Hugging Face's library takes all from this file where it is, the tokens, too.
    tokens = {"decoder_start_token_id": 0, "eos_token_id": 1, "pad_token_id": 0}
    assert written == {"num_beams": 3, "max_length": 7, **tokens}
    assert settings_of(etcmodel.load_pretrained(tmp_path / "again")) == settings_of(model)
    # A file beside it counts alone.
    assert settings_of(give(folder, num_beams=2)).max_length == 21


def test_a_file_that_is_written_has_all_special_tokens(folder, tmp_path):
    # Hugging Face's library reads them nowhere else: without an end token nothing would end.
    model = etcmodel.load_pretrained(folder, eos_token_id=6)
    model.generation_config = GenerationConfig({"num_beams": 2, "pad_token_id": 9})
    model.save_pretrained(tmp_path)
    written = json.loads((tmp_path / "generation_config.json").read_text())
    tokens = {"decoder_start_token_id": 0, "eos_token_id": 6, "pad_token_id": 9}
    assert written == {"num_beams": 2, **tokens}


def test_a_folder_that_says_nothing_gets_no_file(folder, tmp_path):
    model = etcmodel.load_pretrained(folder)
    assert model.generation_config is None
    give(folder, num_beams=2).save_pretrained(tmp_path)
    assert (tmp_path / "generation_config.json").exists()
    model.save_pretrained(tmp_path)  # In its place.
    assert not (tmp_path / "generation_config.json").exists()


def test_what_generate_does_not_know_is_told_and_refused_until_it_is_left_out(folder, caplog):
    neutral = {"typical_p": 1.0, "num_beam_groups": 1, "diversity_penalty": 0.0, "use_cache": True}
    model = give(folder, encoder_repetition_penalty=1.3, made_up=[4], max_length=5, **neutral)
    assert model.generation_config.unsupported() == {
        "encoder_repetition_penalty": 1.3,
        "made_up": [4],
    }
    assert "'encoder_repetition_penalty': 1.3" in caplog.text
    ids = models.ids(1, 9)
    with pytest.raises(ValueError, match="json` has `encoder_repetition_penalty`, 1.3, which"):
        model.generate(ids)
    with pytest.raises(ValueError, match="json` has `made_up`"):
        model.generate(ids, encoder_repetition_penalty=1.0)
    found = model.generate(ids, encoder_repetition_penalty=None, made_up=None)["sequences"]
    model.generation_config = None
    np.testing.assert_array_equal(found, model.generate(ids, max_length=5)["sequences"])
    with pytest.raises(ValueError, match="The call has `typical_p`, 0.9"):
        model.generate(ids, typical_p=0.9)
    with pytest.raises(ValueError, match="`generate` has no setting `num_beems`"):
        model.generate(ids, num_beems=4)


def test_an_entry_of_a_wrong_type_is_an_error_that_names_the_file(folder):
    with pytest.raises(ValueError, match=r"generation_config.json: `num_beams` must be of type"):
        give(folder, num_beams="4")
    with pytest.raises(ValueError, match=r"`max_new_tokens` must be of type int"):
        give(folder, max_new_tokens=4.5)


def test_bad_words_are_lists_of_the_models_tokens(folder):
    model = give(folder, bad_words_ids=[[4], [5, 6]], repetition_penalty=1.2)
    settings = settings_of(model)
    assert settings.bad_words_ids == ((4,), (5, 6)) and settings.repetition_penalty == 1.2
    assert settings_of(model, bad_words_ids=None).bad_words_ids == ()
    assert settings_of(model, bad_words_ids=np.array([[5, 6]])).bad_words_ids == ((5, 6),)
    assert settings_of(model, bad_words_ids=[[np.int64(7)]]).bad_words_ids == ((7,),)
    with pytest.raises(ValueError, match="lists of token ids. Received: 5$"):
        model.generate(models.ids(1, 9), bad_words_ids=5)
    for wrong in ([4], [[]], [["a"]], [[-1]], "a"):
        with pytest.raises(ValueError, match="`bad_words_ids` must be a list of lists"):
            model.generate(models.ids(1, 9), bad_words_ids=wrong)
    with pytest.raises(ValueError, match="`bad_words_ids` must be at least 0 and below"):
        model.generate(models.ids(1, 9), bad_words_ids=[[1000]])
    with pytest.raises(ValueError, match="`repetition_penalty` must be above 0"):
        model.generate(models.ids(1, 9), repetition_penalty=-1.0)


def test_samples_by_the_file(folder):
    model = give(folder, do_sample=True, temperature=0.5, top_k=3, top_p=0.9, max_length=6)
    ids = models.ids(2, 9)
    found = model.generate(ids, seed=4)["sequences"]
    model.generation_config = None
    options = {"do_sample": True, "temperature": 0.5, "top_k": 3, "top_p": 0.9}
    wanted = model.generate(ids, seed=4, max_length=6, **options)["sequences"]
    np.testing.assert_array_equal(found, wanted)


def test_several_end_tokens_are_those_of_the_file_or_of_the_call(folder, caplog, tmp_path):
    model = give(folder, eos_token_id=[7, 2], max_length=6)
    assert "does not know" not in caplog.text
    assert settings_of(model).eos_token_id == (7, 2)
    assert settings_of(model, eos_token_id=7).eos_token_id == 7
    assert settings_of(model, eos_token_id=np.array([2, 7])).eos_token_id == (2, 7)
    assert settings_of(model, eos_token_id=None).eos_token_id == 1  # The model's.
    model.save_pretrained(tmp_path / "again")
    again = etcmodel.load_pretrained(tmp_path / "again")
    assert again.generation_config.entries["eos_token_id"] == [7, 2]
    for wrong, message in (([], "must be a token, or several"), ([7, "2"], "must be of type int")):
        with pytest.raises(ValueError, match=f"json: `eos_token_id` {message}"):
            give(folder, eos_token_id=wrong)


def test_numbers_may_be_those_of_numpy(folder):
    model = etcmodel.load_pretrained(folder)
    ids = models.ids(2, 9)
    numbers = {"top_k": np.int64(3), "temperature": np.float32(0.5), "seed": np.uint8(4)}
    # 1 more than its type can be: the start token.
    numbers |= {"max_new_tokens": np.int8(127), "eos_token_id": [np.int64(7)], "do_sample": True}
    settings = settings_of(model, **numbers)
    assert (settings.max_length, settings.eos_token_id) == (128, 7)
    numbers["max_new_tokens"] = np.array([4, 6]).max()
    plain = {"top_k": 3, "temperature": 0.5, "seed": 4, "max_new_tokens": 6, "eos_token_id": 7}
    found, wanted = (model.generate(ids, **x) for x in (numbers, {**plain, "do_sample": True}))
    np.testing.assert_array_equal(found["sequences"], wanted["sequences"])
    kept = GenerationConfig({"num_beams": np.int64(2), "eos_token_id": [7]})
    assert json.loads(kept.to_json_string()) == {"num_beams": 2, "eos_token_id": [7]}


def test_forced_tokens_of_pegasus_x(tmp_path):
    PEGASUS().save_pretrained(tmp_path)
    assert settings_of(etcmodel.load_pretrained(tmp_path)).forced_eos_token_id == 1
    model = give(tmp_path, num_beams=2)  # It decides, even where it says nothing.
    assert settings_of(model).forced_eos_token_id is None
    give(tmp_path, forced_eos_token_id=1)
    model = etcmodel.load_pretrained(tmp_path, forced_eos_token_id=None)
    assert settings_of(model).forced_eos_token_id is None
    model.generation_config = GenerationConfig({"forced_eos_token_id": 6})
    assert settings_of(model).forced_eos_token_id == 6


def test_forced_tokens_may_be_several(tmp_path):
    PEGASUS().save_pretrained(tmp_path)
    # In an old folder the config has them, in a newer one the file.
    (tmp_path / "generation_config.json").unlink(missing_ok=True)
    entries = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**entries, "forced_eos_token_id": [5, 1]}))
    model = etcmodel.load_pretrained(tmp_path)
    assert settings_of(model).forced_eos_token_id == (5, 1)
    forced = {"forced_bos_token_id": [7, 8, 7], "forced_eos_token_id": [6]}
    model = give(tmp_path, **forced)
    settings = settings_of(model)
    assert (settings.forced_bos_token_id, settings.forced_eos_token_id) == ((7, 8), 6)
    found = model.generate(pegasus_xs.ids(2, 9), max_length=4, min_length=4, num_beams=2)
    assert set(found["sequences"][:, 1].numpy()) <= {7, 8}
    assert found["sequences"][:, 3].numpy().tolist() == [6, 6]
    model.save_pretrained(tmp_path / "again")
    written = json.loads((tmp_path / "again" / "generation_config.json").read_text())
    tokens = {"decoder_start_token_id": 0, "eos_token_id": 1, "pad_token_id": 0}
    assert written == {**forced, **tokens}
    with pytest.raises(
        ValueError, match="`forced_bos_token_id` must be at least 0 .*Received: 1000"
    ):
        model.generate(pegasus_xs.ids(2, 9), forced_bos_token_id=[7, 1000])
    for wrong, told in ([], "a token, or several"), (["a"], "of type int or list"):
        with pytest.raises(ValueError, match=f"`forced_eos_token_id` must be {told}"):
            give(tmp_path, forced_eos_token_id=wrong)


def test_lengths_of_the_file_are_checked_against_the_positions_of_an_led(tmp_path):
    leds.model(**ONE_LAYER, attention_window=4).save_pretrained(tmp_path)
    model = give(tmp_path, max_length=200)
    with pytest.raises(ValueError, match="`max_length` must be at most 21, .* Received: 200"):
        model.generate(leds.ids(1, 9))
    assert model.generate(leds.ids(1, 9), max_length=4)["sequences"].shape[1] <= 4


@pytest.mark.parametrize(
    "topic, kind",
    [("t5", "longt5/b_generate"), ("t5", "pegasus_x/c_lm"), ("longformer", "led/b_lm")],
)
def test_the_file_of_a_folder_of_hugging_face_goes_back(topic, kind, tmp_path):
    folder = cases.topic_folder(topic) / kind
    etcmodel.load_pretrained(folder).save_pretrained(tmp_path)
    one, other = (
        json.loads((x / "generation_config.json").read_text()) for x in (folder, tmp_path)
    )
    assert one == other


def test_what_only_some_searches_mind_is_no_matter_when_loading(folder):
    model = give(folder, do_sample=False, temperature=0.0, max_length=1, length_penalty=-1)
    with pytest.raises(ValueError, match="`temperature` must be above 0"):
        model.generate(models.ids(1, 9), max_length=5)
    found = model.generate(models.ids(1, 9), max_length=5, temperature=1.0, num_beams=2)
    assert found["sequences"].shape[0] == 1


@pytest.mark.parametrize(
    "name", ["forced_bos_token_id", "forced_eos_token_id", "decoder_start_token_id"]
)
def test_tokens_beyond_the_vocabulary_are_refused(name):
    model = MODEL()
    for token in (models.VOCAB_SIZE, -1):
        with pytest.raises(ValueError, match=f"`{name}` must be .* Received: {token}"):
            model.generate(models.ids(1, 9), **{name: token})


def test_batches_are_dicts_for_all_of_them():
    ids = models.ids(2, 9)
    model, mask = MODEL(), np.ones_like(ids)
    batch = {"input_ids": ids, "attention_mask": mask, "labels": models.ids(2, 3)}
    found = model.generate(batch, max_length=5)["sequences"]
    np.testing.assert_array_equal(
        found, model.generate(tf.constant(ids), mask, max_length=5)["sequences"]
    )


def test_what_is_overridden_at_loading_is_so_in_generation(tmp_path):
    """Whether the file has the entry or not."""
    PEGASUS().save_pretrained(tmp_path)
    (tmp_path / "generation_config.json").write_text('{"num_beams": 2, "pad_token_id": 0}')
    model = etcmodel.from_pretrained(tmp_path, forced_eos_token_id=6, pad_token_id=5)
    settings = model.generation_settings()
    assert (settings.forced_eos_token_id, settings.pad_token_id, settings.num_beams) == (6, 5, 2)
