"""What may be wrong with the files of a model's folder, and what may come of it.

Each file is damaged at random; then what it says now is read by slow readers of this module, which
judge what a model may be made of it.
"""

import enum
import functools
import json
import math
import re
import struct

import h5py
import ml_dtypes
import numpy as np

from tests.soak import malformed, wrong

__all__ = ["KINDS", "Safetensors", "Verdict", "damage", "packed", "strict_json", "tensors"]


class Verdict(enum.Enum):
    """What may come of a damaged folder."""

    REFUSED = "it must be refused"
    SAME = "it must be refused, or change nothing"
    COUNTS = "it must be refused, or change something"
    OPEN = "it may change anything"


REFUSED, SAME, COUNTS, OPEN = Verdict

# Entries of configs that say how a model computes what it does: they may have other values.
COUNTING = frozenset(
    [
        *("activation_function", "architectures", "attention_dilation", "attention_window"),
        *("autoregressive", "block_size", "bos_token_id", "chunk_size", "classifier_dropout"),
        *("decoder_attention_heads", "decoder_start_token_id", "decompressor_input"),
        *("default_segment_id", "encoder_attention_heads", "encoder_attention_type"),
        *("eos_token_id", "feed_forward_proj", "forced_bos_token_id", "forced_eos_token_id"),
        *("global_block_length", "global_block_size", "global_positions", "global_token_id"),
        *("hidden_act", "id2label", "label2id", "layer_norm_eps", "layer_norm_epsilon"),
        *("local_radius", "max_encoder_position_embeddings", "max_position_embeddings"),
        *("memory_type_id", "model_type", "normalizes_memory", "num_attention_heads"),
        *("num_labels", "pad_token_id", "position_period", "problem_type"),
        *("relative_attention_max_distance", "relative_pos_max_distance", "scale_decoder_outputs"),
        *("scale_embedding", "sep_token_id", "stagger_local_blocks", "tie_word_embeddings"),
        *("use_hard_g2l_mask", "use_hard_l2g_mask", "use_pre_activation_order"),
        # Of all layers, or one for each: these may be as large.
        *("share_att_output_projection", "share_feed_forward_params", "share_kv_projections"),
        "share_qkv_projections",
    ]
)
_RATES = re.compile(r".*dropout.*")
_NO_NEGATIVES = re.compile(r".*dropout.*|layer_norm_eps.*|init_std|initializer_(range|factor)")
# Entries that may say one thing in two forms.
_ONE_OR_SEVERAL = {"attention_window", "attention_dilation", "eos_token_id", "architectures"}
_MAY_BE_NULL = re.compile(
    r"max_.*|memory_type_id|stride|dropout|classifier_dropout|problem_type|num_labels|"
    r"(decoder_start|eos|pad|bos|forced_\w+)_token_id|scale_decoder_outputs|attention_window|"
    r"sep_token_id|model_type|architectures|id2label|label2id|segment_id|global_token_id|stride|"
    r"num_beams|length_penalty|do_sample|hidden_act|temperature"
)
# Of Hugging Face's names of tensors, those that stand for a second time what others hold.
_COPIES = {
    "led": {
        "led.encoder.embed_tokens.weight": "led.shared.weight",
        "led.decoder.embed_tokens.weight": "led.shared.weight",
        "lm_head.weight": "led.shared.weight",
    },
    "longt5": {
        "encoder.embed_tokens.weight": "shared.weight",
        "decoder.embed_tokens.weight": "shared.weight",
        "lm_head.weight": "shared.weight",
    },
    "pegasus_x": {
        "model.encoder.embed_tokens.weight": "model.shared.weight",
        "model.decoder.embed_tokens.weight": "model.shared.weight",
        "lm_head.weight": "model.shared.weight",
    },
    "longformer": {
        "lm_head.decoder.weight": "longformer.embeddings.word_embeddings.weight",
        "lm_head.decoder.bias": "lm_head.bias",
    },
    "roberta as a longformer": {
        "lm_head.decoder.weight": "roberta.embeddings.word_embeddings.weight",
        "lm_head.decoder.bias": "lm_head.bias",
    },
}
# Tensors that a model does without.
_UNNEEDED = {
    "bert": r"bert\.pooler\..*",
    "bert as a gmat": r"bert\.pooler\..*",
    "roberta": r"roberta\.pooler\..*|lm_head\..*",
    "roberta as a longformer": r"roberta\.pooler\..*",
    "led": r"final_logits_bias",
}
_FLOATS = {
    "F16": np.dtype("<f2"),
    "F32": np.dtype("<f4"),
    "F64": np.dtype("<f8"),
    "BF16": np.dtype(ml_dtypes.bfloat16),
}
_DTYPES = (*_FLOATS, "BOOL", "I8", "U8", "I16", "I32", "I64", "F8_E4M3", "F8_E5M2", "Q4", "", 7)
_TYPES = {bool: "bool", int: "number", float: "number", str: "str", type(None): "null"}


def damage(random, system, path):
    """Damages a file; (`Verdict`, what was done to it).

    Args:
        random: `random.Random`.
        system: str. The name of the model's system.
        path: of the file.
    """
    content = path.read_bytes()
    kind = next(kind for pattern, kind in KINDS if re.fullmatch(pattern, path.name))
    if random.random() < 0.02:
        path.unlink()
        path.mkdir()
        return REFUSED if kind.is_needed else SAME, "a folder"
    if random.random() < 0.03:
        path.write_bytes(random.choice((b"", b"\0" * len(content), b"\xff" * 9)))
        return REFUSED if kind.is_needed else SAME, "nothing of it"
    return kind(random, system, path, content)


class _Json:
    """A file of a JSON object.

    Args:
        counting: set of names of entries that may have other values; None for all.
        may_have_more: bool. Whether it may have unknown entries.
        is_needed: bool. Whether there is no model without it.
    """

    def __init__(self, counting=COUNTING, *, may_have_more=False, is_needed=True):
        self._counting, self._may_have_more = counting, may_have_more
        self.is_needed = is_needed

    def __call__(self, random, system, path, content):
        entries = json.loads(content)
        do = random.choice(_JSON_DAMAGE)
        made = do(random, entries)
        path.write_bytes(made)
        return self.judge(content, made), f"{_name(do)} {_changes(content, made)}"

    def judge(self, content, made):
        old, new = json.loads(content), strict_json(made)
        if not isinstance(new, dict):
            return REFUSED if self.is_needed else SAME
        verdicts = {self._of_entry(name, old, new) for name in {*old, *new}} - {None}
        return next((x for x in (REFUSED, OPEN) if x in verdicts), SAME)

    def _of_entry(self, name, old, new):
        if name in old and name in new and same_json(old[name], new[name]):
            return None
        if name not in old:  # Null says that there is none.
            return SAME if self._may_have_more or new[name] is None else REFUSED
        counts = self._counting is None or name in self._counting
        if name not in new:
            return OPEN if counts else SAME
        value = new[name]
        end = 1 if _RATES.fullmatch(name) else math.inf
        is_limited = _NO_NEGATIVES.fullmatch(name) and _kind(value) == "number"
        if is_limited and not 0 <= value < end:
            return REFUSED
        if _kind(value) == "number" and not -math.inf < value < math.inf:
            return REFUSED if counts else SAME
        return OPEN if counts and _is_alike(name, old[name], value) else SAME


def _name(do):
    return do.__name__.strip("_").replace("_", " ")


def _changes(content, made):
    """The entries that are others now."""
    old, new = json.loads(content), strict_json(made)
    if not isinstance(new, dict):
        return f"{made[:60]!r}"
    names = [x for x in sorted({*old, *new}) if not same_json(old.get(x), new.get(x))]
    told = [f"{x[:40]}: {old.get(x, '-')!r:.40} -> {new.get(x, '-')!r:.40}" for x in names]
    return f"({', '.join(told)[:300]})"


def strict_json(content):
    """The value of a JSON text that has one reading only, else None."""

    def once(pairs):
        if len(dict(pairs)) < len(pairs):
            raise ValueError
        return dict(pairs)

    try:
        return json.loads(content.decode("utf-8-sig"), object_pairs_hook=once)
    except (ValueError, RecursionError):
        return None


def same_json(one, other):
    """Whether two values are one also in their types: 1 is neither true nor 1.0."""
    return repr(one) == repr(other)


def _kind(value):
    return _TYPES.get(type(value), type(value).__name__)


def _is_alike(name, old, new):
    if new is None:
        return bool(_MAY_BE_NULL.fullmatch(name)) or old is None
    if name in _ONE_OR_SEVERAL:
        old, new = ([x] if not isinstance(x, list) else x for x in (old, new))
    if isinstance(old, int) and isinstance(new, float) and not isinstance(old, bool):
        return False  # A number of things is an integer.
    if isinstance(old, list) and isinstance(new, list):
        return len({*map(_kind, old), *map(_kind, new)}) <= 1
    return old is None or _kind(old) == _kind(new)


def _dumped(entries):
    return json.dumps(entries, indent=1).encode()


def _deleted(random, entries):
    name = random.choice(sorted(entries))
    return _dumped({key: value for key, value in entries.items() if key != name})


def _renamed(random, entries):
    name = random.choice(sorted(entries))
    new = random.choice((name + "s", name.upper(), f"{name} ", f"my_{name}", name[:-1]))
    return _dumped({new if key == name else key: value for key, value in entries.items()})


def _doubled(random, entries):
    name = random.choice(sorted(entries))
    value = random.choice((entries[name], _other(random, entries[name])))
    pairs = [*entries.items(), (name, value)]
    if random.random() < 0.5:
        pairs = pairs[::-1]
    return ("{" + ", ".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in pairs) + "}").encode()


def _of_other_type(random, entries):
    name = random.choice(sorted(entries))
    return _dumped({**entries, name: _other(random, entries[name])})


def _other(random, value):
    """A value of another type that looks like this one."""
    others = [str(value), [value], {"value": value}, None, not value, [[value]], json.dumps(value)]
    if isinstance(value, bool):
        others += [int(value), float(value), str(value).lower()]
    elif isinstance(value, int | float):
        others += [float(value), value + 0.5, f" {value}", f"{value}.0", bool(value)]
    elif isinstance(value, list):
        others += [dict(enumerate(value)), *value[:1], ",".join(map(str, value))]
    return random.choice(others)


def _odd_number(random, entries):
    names = [name for name, value in entries.items() if _kind(value) == "number"]
    odd = (math.nan, math.inf, -math.inf, -1, 0, 1e308, -1e-9, 2**31, 2**63, 10**400, 1, 3, 1e-300)
    return _dumped({**entries, random.choice(names or ["a"]): random.choice(odd)})


def _odd_value(random, entries):
    name = random.choice(sorted(entries))
    return _dumped({**entries, name: random.choice(malformed.ODD_VALUES)})


def _unknown(random, entries):
    name = random.choice(("residual_scale", "quantization_config", "rope_scaling", "x", "é" * 900))
    value = random.choice((2.0, None, True, {"load_in_8bit": True}, "linear", "word " * 900))
    return _dumped({**entries, name: value})


def _deep(random, entries):
    name = random.choice(sorted(entries))
    depth = random.choice((5, 90, 200, 5000, 100_000))
    nested = b"[" * depth + b"]" * depth
    return _dumped({**entries, name: "@"}).replace(b'"@"', nested)


def _mutated(random, entries):
    return _dumped(malformed.mutated(random, entries))


def _damaged(random, entries):
    return malformed.damaged(random, _dumped(entries))


def _encoded(random, entries):
    encodings = ("utf-8-sig", "utf-16", "utf-16-le", "utf-32")
    return json.dumps(entries).encode(random.choice(encodings))


def _of_text(damage):
    @functools.wraps(damage)
    def do(random, entries):
        return damage(random, _dumped(entries))

    return do


_JSON_DAMAGE = (
    *(_deleted, _renamed, _doubled, _of_other_type, _of_other_type, _odd_number, _odd_value),
    *(_unknown, _deep, _mutated, _damaged, _encoded),
    *map(_of_text, (wrong.cut_text, wrong.no_utf8, wrong.other_json)),
)


class Safetensors:
    """A file of tensors."""

    is_needed = True

    def __call__(self, random, system, path, content):
        do = random.choice(_TENSOR_DAMAGE)
        made = do(random, system, content)
        path.write_bytes(made)
        return self.judge(system, content, made), f"{_name(do)} {_other_tensors(content, made)}"

    def judge(self, system, content, made):
        old, new = tensors(content), tensors(made)
        if new is None:
            return REFUSED
        verdicts = {_of_tensor(name, system, old, new) for name in {*old, *new}}
        return next((x for x in (REFUSED, COUNTS, OPEN) if x in verdicts), SAME)


def _of_tensor(name, system, old, new):
    if name not in old:
        original = _COPIES.get(system, {}).get(name)
        is_copy = original not in new or np.array_equal(_wide(new[name]), _wide(new[original]))
        return SAME if is_copy else COUNTS
    if re.fullmatch(_UNNEEDED.get(system, ""), name):
        return SAME
    if name not in new or old[name].size != new[name].size:
        return REFUSED
    if new[name].dtype not in _FLOATS.values():
        return REFUSED
    if old[name].shape != new[name].shape:
        return SAME  # An axis of 1 says nothing; others may not be taken.
    return SAME if np.array_equal(_wide(old[name]), _wide(new[name])) else OPEN


def _other_tensors(content, made):
    old, new = tensors(content), tensors(made) or {}
    told = [
        f"{name}: {_form(old.get(name))} -> {_form(new.get(name))}"
        for name in sorted({*old, *new})
        if _form(old.get(name)) != _form(new.get(name))
        or old[name].tobytes() != new[name].tobytes()
    ]
    return f"({', '.join(told)[:300]})"


def _form(array):
    return "-" if array is None else f"{array.dtype}{list(array.shape)}"


def _wide(array):
    return np.asarray(array, np.float64)


def tensors(content):
    """The arrays of a safetensors file that is nothing but right, else None.

    Source: https://github.com/huggingface/safetensors#format
    """
    try:
        (size,) = struct.unpack_from("<Q", content)
        header = strict_json(content[8 : 8 + size])
        if size > len(content) - 8 or not isinstance(header, dict):
            return None
        header.pop("__metadata__", None)
        data, end, found = content[8 + size :], 0, {}
        for name, entry in sorted(header.items(), key=lambda x: x[1]["data_offsets"]):
            first, last = entry["data_offsets"]
            kind = {**_FLOATS, "I8": "<i1", "U8": "<u1", "BOOL": "?", "I32": "<i4"}[entry["dtype"]]
            if first != end or set(entry) != {"dtype", "shape", "data_offsets"} or not name:
                return None
            part = np.frombuffer(data[first:last], kind)
            found[name], end = part.reshape(entry["shape"]), last
        return found if end == len(data) else None
    except (KeyError, TypeError, ValueError, struct.error):
        return None


def packed(arrays):
    """A safetensors file."""
    names = {str(np.dtype(kind)): name for name, kind in _FLOATS.items()}
    names |= {"int8": "I8", "uint8": "U8", "bool": "BOOL", "int32": "I32"}
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, array in arrays.items():
        start, data = len(data), data + array.tobytes()
        entry = {"dtype": names[str(array.dtype)], "shape": list(array.shape)}
        header[name] = {**entry, "data_offsets": [start, len(data)]}
    return _with_header(header, data)


def _with_header(header, data):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def _parts(content):
    (size,) = struct.unpack_from("<Q", content)
    return json.loads(content[8 : 8 + size]), content[8 + size :]


def _other_entry(random, system, content):
    """A header that says something else of a tensor."""
    del system
    header, data = _parts(content)
    names = [name for name in header if name != "__metadata__"]
    name = random.choice(names)
    entry, other = header[name], header[random.choice(names)]
    first, last = entry["data_offsets"]
    changes = (
        {"data_offsets": other["data_offsets"]},
        {"data_offsets": [first, last + 4]},
        {"data_offsets": [last, first]},
        {"data_offsets": [first + 10**12, last + 10**12]},
        {"data_offsets": [-4, last]},
        {"data_offsets": "0"},
        {"dtype": random.choice(_DTYPES)},
        {"shape": entry["shape"][::-1]},
        {"shape": [*entry["shape"], 1]},
        {"shape": [2**40, 2**40]},
        {"shape": [-1]},
        {"shape": []},
        {"shape": None},
    )
    header[name] = {**entry, **random.choice(changes)}
    return _with_header(header, data)


def _other_length(random, system, content):
    del system
    sizes = (0, 1, 2**31, 2**63, 2**64 - 1, len(content), len(content) - 8, 10**8)
    return struct.pack("<Q", random.choice(sizes)) + content[8:]


def _other_header(random, system, content):
    """A header that is no JSON."""
    del system
    header, data = _parts(content)
    deep = b'{"a": ' + b"[" * 50_000 + b"]" * 50_000 + b"}"
    made = random.choice((deep, b"[]", json.dumps(header).encode("utf-16")))
    return _with_header(made, data)


def _end(random, system, content):
    del system
    return random.choice((content + b"\0" * 8, content[:-4], content[: len(content) // 2]))


def _other_names(random, system, content):
    """Tensors that are missing, more, or have other names."""
    arrays = dict(tensors(content))
    name = random.choice(sorted(arrays))
    kind = random.randrange(4)
    if kind == 0:
        del arrays[name]
    elif kind == 1:
        arrays[name + random.choice(("2", ".SCB", "_orig"))] = arrays.pop(name)
    elif kind == 2:
        arrays[random.choice(("x.", "model.", "")) + "more.weight"] = np.ones([3], np.float32)
    elif copies := _COPIES.get(system):
        copy, original = random.choice(sorted(copies.items()))
        if original in arrays:
            arrays[copy] = arrays[original] + np.float32(random.choice((0, 0.5)))
    return packed(arrays)


def _other_dtype(random, system, content):
    """A tensor, or all, of another type."""
    del system
    arrays = dict(tensors(content))
    names = random.choice((sorted(arrays), [random.choice(sorted(arrays))]))
    exact = ("float64",) * 3
    kind = random.choice((*exact, "int8", "int32", "bool", "uint8", "float16", "bfloat16"))
    kind = ml_dtypes.bfloat16 if kind == "bfloat16" else kind
    for name in names:
        arrays[name] = (arrays[name] * (100 if kind == "int8" else 1)).astype(kind)
        if kind == "int8":
            arrays[f"{name}.SCB"] = np.full(arrays[name].shape[:1], 1.27, np.float32)
    return packed(arrays)


def _other_values(random, system, content):
    del system
    arrays = dict(tensors(content))
    name = random.choice(sorted(arrays))
    arrays[name] = np.full_like(arrays[name], random.choice((0.0, 1.0, 1e30, np.nan)))
    return packed(arrays)


def _damaged_tensors(random, system, content):
    del system
    return malformed.damaged(random, content)


_TENSOR_DAMAGE = (
    *(_other_entry, _other_entry, _other_length, _other_header, _end, _other_names, _other_names),
    *(_other_dtype, _other_dtype, _other_values, _damaged_tensors),
)


class _Hdf5:
    is_needed = True

    def __call__(self, random, system, path, content):
        if random.random() < 0.3:
            path.write_bytes(wrong.cut_file(random, content))
            return REFUSED, "cut"
        if random.random() < 0.3:
            path.write_bytes(malformed.damaged(random, content))
            return OPEN, "damaged"  # HDF5 of this version has no checksums.
        with h5py.File(path, "a") as file:
            found = []
            file.visititems(lambda name, x: found.append(name) if hasattr(x, "dtype") else None)
            name = random.choice(found)
            array = file[name][()]
            del file[name]
            do = random.choice(_HDF5_DAMAGE)
            return do(random, file, name, array, path), f"{_name(do)} {name}"


def _linked(random, file, name, array, path):
    other = path.parent / "other.h5"
    with h5py.File(other, "w") as apart:
        apart["w"] = array
    file["w"] = array
    virtual = h5py.VirtualLayout(array.shape, array.dtype)
    virtual[...] = h5py.VirtualSource(str(other), "w", array.shape)
    kind = random.randrange(4)
    if kind == 0:
        file[name] = h5py.ExternalLink(str(other), "w")
    elif kind == 1:
        file[name] = h5py.SoftLink("/w")
    elif kind == 2:
        file[name] = h5py.SoftLink(f"/{name}")
    else:
        file.create_virtual_dataset(name, virtual)
    return REFUSED


def _stored_apart(random, file, name, array, path):
    del random
    (path.parent / "secret").write_bytes(array.tobytes())
    place = [(str(path.parent / "secret"), 0, array.nbytes)]
    file.create_dataset(name, array.shape, array.dtype, external=place)
    return REFUSED


def _of_other_dtype(random, file, name, array, path):
    del path
    kind = random.choice(("i4", "?", "u1", "S3", "f8", "c8"))
    file[name] = array.astype(kind)
    return SAME if kind == "f8" else REFUSED


def _of_other_shape(random, file, name, array, path):
    del path
    file[name] = random.choice((array[:-1], array[np.newaxis], np.concatenate([array, array])))
    return REFUSED


def _left_out(random, file, name, array, path):
    del random, array, path
    file.create_group(name)
    return REFUSED


def _huge(random, file, name, array, path):
    del random, path
    file.create_dataset(name, [10**6, 10**6], "f4", chunks=(1000, 1000), compression="gzip")
    return REFUSED


_HDF5_DAMAGE = (_linked, _linked, _stored_apart, _of_other_dtype, _of_other_shape, _left_out, _huge)


class _Bundle:
    """A file of TensorFlow's checkpoints: both have checksums."""

    is_needed = True

    def __call__(self, random, system, path, content):
        if random.random() < 0.4:
            path.write_bytes(wrong.cut_file(random, content))
            return REFUSED, "cut"
        if random.random() < 0.2:
            path.unlink()
            return REFUSED, "gone"
        path.write_bytes(malformed.damaged(random, content))
        return SAME, "damaged"


class _Words:
    """A vocabulary of a token a line."""

    is_needed = False
    _special = ("[UNK]", "[CLS]", "[SEP]")

    def __call__(self, random, system, path, content):
        words = content.decode().splitlines()
        do = random.choice(self._damage)
        made = do(self, random, words)
        made = made if isinstance(made, bytes) else ("\n".join(made) + "\n").encode()
        path.write_bytes(made)
        return self.judge(words, made), _name(do)

    def judge(self, words, made):
        try:
            found = made.decode("utf-8-sig").rstrip().split("\n")
        except UnicodeDecodeError:
            return REFUSED
        found = [word.strip() for word in found]
        if not set(found).issuperset(self._special) or len({*found}) < len(found):
            return REFUSED
        return SAME if found == words else OPEN

    def _missing(self, random, words):
        special = random.choice(self._special)
        return [word for word in words if word != special]

    def _twice(self, random, words):
        place = random.randrange(len(words))
        return [*words[:place], random.choice(words), *words[place:]]

    def _blank(self, random, words):
        place = random.randrange(len(words))
        return [*words[:place], random.choice(("", " ", "\t")), *words[place:]]

    def _encoded(self, random, words):
        return "\n".join(words).encode(random.choice(("utf-8-sig", "utf-16", "utf-32")))

    def _lines(self, random, words):
        return random.choice(("\r\n", "\r")).join(words).encode()

    def _bytes(self, random, words):
        return malformed.damaged(random, "\n".join(words).encode())

    def _no_utf8(self, random, words):
        return wrong.no_utf8(random, "\n".join(words).encode())

    def _more(self, random, words):
        return [*words, *(f"more{i}" for i in range(random.choice((1, 500))))]

    _damage = (_missing, _twice, _blank, _encoded, _lines, _bytes, _no_utf8, _more)


class _Bytes:
    """A file of another library's form, which may mean anything once it is damaged."""

    is_needed = False

    def __call__(self, random, system, path, content):
        path.write_bytes(malformed.damaged(random, content))
        return OPEN, "damaged"


class _TokensAsJson(_Json):
    """A vocabulary within JSON, which may be another one."""

    def judge(self, content, made):
        new = strict_json(made)
        return OPEN if isinstance(new, dict) else SAME


_HEAD_ENTRIES = ("dropout", "relation_names", "problem_type", "num_labels", "head_type")
_HEAD_ENTRIES = {*_HEAD_ENTRIES, "id2label", "label2id", "label_names", "labels"}
_TOKENIZER_ENTRIES = {"do_lower_case", "add_prefix_space", "extra_ids", "split_punctuation"}
KINDS = [
    (r"(etc_|bert_)?config\.json", _Json()),
    (r"head_config\.json", _Json(_HEAD_ENTRIES, is_needed=False)),
    (r"processor_config\.json", _Json(None, is_needed=False)),
    (r"generation_config\.json", _Json(None, may_have_more=True, is_needed=False)),
    (r"tokenizer_config\.json", _Json(_TOKENIZER_ENTRIES, may_have_more=True, is_needed=False)),
    (r"model\.safetensors\.index\.json", _Json(frozenset(), may_have_more=True)),
    (r"tokenizer\.json|vocab\.json", _TokensAsJson(is_needed=False)),
    (r".*\.safetensors", Safetensors()),
    (r".*\.h5", _Hdf5()),
    (r".*\.index|.*\.data-.*", _Bundle()),
    (r"vocab\.txt", _Words()),
    (r"merges\.txt|spiece\.model", _Bytes()),
]
