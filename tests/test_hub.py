"""Models of the Hugging Face Hub, by name, from a small hub on this machine."""

import hashlib
import http.server
import json
import re
import sys
import threading

import numpy as np
import pytest
from huggingface_hub import constants

import etcmodel
from etcmodel import extras, hub
from etcmodel.checkpoints import sources
from etcmodel.finetuning import model_folder
from tests.checkpoints import longformers, test_text_encoder, torch_writer

NAME, COMMITS = "owner/tiny", {"main": "a" * 40, "v1": "b" * 40}


class Hub(http.server.ThreadingHTTPServer):
    """Serves files of one model, by revision; `requests` has the paths that were asked for."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.requests, self.refusal, self.cut = {}, [], None, None

    def of(self, revision):
        name = next((x for x, commit in COMMITS.items() if revision in (x, commit)), None)
        return name and (COMMITS[name], self.files[name])


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        path = self.path.partition("?")[0]
        self.server.requests.append(path)
        if self.server.refusal:
            status, code = self.server.refusal
            return self.reply(b"{}", status, {"X-Error-Code": code})
        pattern = rf"(?:/api/models)?/{NAME}(?:/(revision|tree|resolve)/(\w+)(?:/(.*))?)?"
        match = re.fullmatch(pattern, path)
        if match is None:
            return self.reply(b"{}", 404, {"X-Error-Code": "RepoNotFound"})
        kind, revision, file = match.groups()
        found = self.server.of(revision or "main")
        if found is None:
            return self.reply(b"{}", 404, {"X-Error-Code": "RevisionNotFound"})
        commit, files = found
        if kind == "resolve":
            tag = f'"{hashlib.sha1(files[file]).hexdigest()}"'
            return self.reply(files[file], 200, {"ETag": tag, "X-Repo-Commit": commit}, file)
        tree = [
            {"type": "file", "path": x, "size": len(c), "oid": hashlib.sha1(c).hexdigest()}
            for x, c in files.items()
        ]
        info = {"id": NAME, "sha": commit, "siblings": [{"rfilename": x} for x in files]}
        return self.reply(json.dumps(tree if kind == "tree" else info).encode())

    do_HEAD = do_GET

    def reply(self, content, status=200, headers=None, file=None):
        self.send_response(status)
        for name, value in {"Content-Length": len(content), **(headers or {})}.items():
            self.send_header(name, str(value))
        self.end_headers()
        if self.command == "GET":
            is_cut = file is not None and file == self.server.cut
            self.wfile.write(content[: len(content) // 2] if is_cut else content)
            self.close_connection = is_cut


@pytest.fixture
def server(monkeypatch, tmp_path):
    hub._fetched.cache_clear()
    with Hub() as served:
        thread = threading.Thread(target=served.serve_forever, daemon=True)
        thread.start()
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{served.server_port}")
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.chdir(tmp_path)
        model, older = longformers.masked_lm(), longformers.masked_lm(vocab_size=50)
        for revision, made in {"main": model, "v1": older}.items():
            folder = longformers.write(tmp_path / revision, made)
            served.files[revision] = {x.name: x.read_bytes() for x in folder.iterdir()}
        yield served
        served.shutdown()
        thread.join()


def asked_for(server):
    """The files that were downloaded."""
    return {x.rpartition("/")[2] for x in server.requests if "/resolve/" in x}


@pytest.mark.parametrize("name", [NAME, f"hf:{NAME}"])
def test_a_model_is_loaded_by_its_name(server, name):
    server.files["main"] |= {"README.md": b"# A model", "pytorch_model.bin": b"huge"}
    model = etcmodel.from_pretrained(name)
    wanted = longformers.tensors(longformers.masked_lm())
    for tensor, value in longformers.tensors(model).items():
        np.testing.assert_array_equal(value, wanted[tensor])
    assert asked_for(server) == {"config.json", "model.safetensors"}  # And nothing else.
    # Files that are there need not be downloaded again, nor the network be asked in one process.
    server.requests.clear()
    etcmodel.LongformerForMaskedLM.from_pretrained(name)
    assert not server.requests


@pytest.mark.parametrize("path", ["", "0_Transformer"])
def test_vectors_are_those_of_the_files_of_sentence_transformers(server, tmp_path, path):
    folder = test_text_encoder.write_bert(tmp_path / "bert")
    test_text_encoder.as_sentence_transformers(folder, path=path, max_seq_length=5)
    (folder / "config_sentence_transformers.json").write_text("{}")
    files = {str(x.relative_to(folder)): x.read_bytes() for x in folder.rglob("*.*")}
    server.files["main"] = {**files, "README.md": b"# A model"}
    encoder, wanted = etcmodel.TextEncoder(NAME), etcmodel.TextEncoder(folder)
    np.testing.assert_array_equal(encoder.encode(["a b. c d e"]), wanted.encode(["a b. c d e"]))
    assert encoder.max_length == 5
    assert asked_for(server) == {name.rpartition("/")[2] for name in files}


def test_a_revision_may_be_chosen(server):
    for model in (
        etcmodel.from_pretrained(NAME, revision="v1"),
        etcmodel.from_pretrained(f"hf:{NAME}@v1"),
    ):
        assert model.config.vocab_size == 50
    with pytest.raises(ValueError, match=f"hf:{NAME}@v9: the model has no such revision.$"):
        etcmodel.from_pretrained(NAME, revision="v9")
    with pytest.raises(ValueError, match="'hf:owner/tiny@v1' and `revision`, 'v2', name two"):
        etcmodel.from_pretrained(f"hf:{NAME}@v1", revision="v2")
    with pytest.raises(ValueError, match="`revision` is of models of the Hugging Face Hub"):
        etcmodel.from_pretrained("main", revision="v1")


def test_weights_of_pytorch_are_taken_if_there_are_no_others(server, tmp_path):
    tensors = longformers.tensors(longformers.masked_lm())
    torch_writer.write(tmp_path / "weights.bin", tensors)
    del server.files["main"]["model.safetensors"]
    server.files["main"]["pytorch_model.bin"] = (tmp_path / "weights.bin").read_bytes()
    found = longformers.tensors(etcmodel.from_pretrained(NAME))
    for tensor, value in tensors.items():
        np.testing.assert_array_equal(found[tensor], value)
    del server.files["main"]["pytorch_model.bin"]
    server.files["main"]["flax_model.msgpack"] = b""
    hub._fetched.cache_clear()
    with pytest.raises(ValueError, match=f"hf:{NAME} has none of model.safetensors, .*bin.index"):
        etcmodel.from_pretrained(NAME)


def test_without_a_connection_it_is_taken_from_the_cache(server, monkeypatch):
    etcmodel.from_pretrained(NAME)
    hub._fetched.cache_clear()
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert etcmodel.from_pretrained(NAME).config.vocab_size == 40
    hub._fetched.cache_clear()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert etcmodel.from_pretrained(NAME).config.vocab_size == 40
    with pytest.raises(ValueError, match=r"hf:owner/other is not in the cache, .*`hf download ow"):
        etcmodel.from_pretrained("owner/other")


@pytest.mark.parametrize(
    ("refusal", "message"),
    [
        ((401, "RepoNotFound"), "has no such model, or it is private; then log in by `hf auth"),
        ((403, "GatedRepo"), "its owner must grant access to it; then log in by `hf auth login`"),
    ],
)
def test_what_may_not_be_read_is_told_in_a_line(server, refusal, message):
    server.refusal = refusal
    with pytest.raises(ValueError, match=f"hf:{NAME}: .*{message}") as error:
        etcmodel.from_pretrained(NAME)
    assert "\n" not in str(error.value)


def test_a_name_that_is_a_folder_is_the_folder(server, tmp_path):
    longformers.write(tmp_path / "own", longformers.masked_lm())
    (tmp_path / "owner").mkdir()
    (tmp_path / "own").rename(tmp_path / NAME)
    etcmodel.from_pretrained(NAME)
    assert not server.requests
    with pytest.raises(ValueError, match="There is no directory 'owner/typo'"):  # A local path.
        etcmodel.from_pretrained("owner/typo")
    assert not server.requests


def test_what_comes_in_part_is_never_loaded(server):
    server.cut = "model.safetensors"
    with pytest.raises(ValueError, match=rf"hf:{NAME} could not be downloaded \(.*Try again"):
        etcmodel.from_pretrained(NAME)
    server.cut = None
    etcmodel.from_pretrained(NAME)


def test_a_processor_needs_no_weights(server):
    words = ("<s>", "<pad>", "</s>", "<unk>", "<mask>", "a")
    files = {"vocab.json": {word: number for number, word in enumerate(words)}}
    server.files["main"] = {name: json.dumps(x).encode() for name, x in files.items()}
    server.files["main"] |= {"merges.txt": b"#version: 0.2\n", "model.onnx": b""}
    assert etcmodel.LongformerProcessor.from_pretrained(f"hf:{NAME}").vocab_size == 6
    assert asked_for(server) == {"vocab.json", "merges.txt"}


def test_a_mistyped_folder_is_told_as_such(server):
    with pytest.raises(ValueError, match="^There is no folder 'runs/best'. As the name of a mod"):
        etcmodel.from_pretrained("runs/best")
    with pytest.raises(ValueError, match="hf:a/b/c is no name of a model, .* OWNER/NAME"):
        etcmodel.from_pretrained("hf:a/b/c")


def test_programs_take_names(server):
    name = f"hf:{NAME}@v1"
    assert model_folder.encoder_config(name, 64, 0).vocab_size == 50
    assert "lm_head.bias" in sources.open_source(name).shapes
    words = ("<s>", "<pad>", "</s>", "<unk>", "<mask>", "a")
    numbered = {word: number for number, word in enumerate(words)}
    server.files["main"]["vocab.json"] = json.dumps(numbered).encode()
    server.files["main"]["merges.txt"] = b"#version: 0.2\n"
    found = model_folder.vocabulary(f"hf:{NAME}", {}, {})
    assert found["vocab_file"].endswith("vocab.json")
    assert etcmodel.LongformerProcessor.from_pretrained(f"hf:{NAME}").vocab_size == 6


def test_without_the_package_the_extra_is_named(monkeypatch):
    hub._fetched.cache_clear()
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(extras.MissingExtraError, match=r"hf download .*etcmodel\[hub\]"):
        hub.local_folder("hf:owner/tiny")
