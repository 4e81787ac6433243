"""What is certainly wrong with a file, format by format: functions of (random, bytes) to bytes.

Each makes something that no reader may take for good. Other damage (`malformed.damaged`) may be
harmless: a byte of a text, of an array that has no checksum, of what is never read.
"""

import functools
import json
import struct
import tempfile

import numpy as np
import safetensors.numpy
import tensorflow as tf


def cut_text(random, content):
    """A JSON text that ends too early."""
    return content[: random.randrange(len(content.rstrip()))]


def no_utf8(random, content):
    place = random.randrange(1, len(content.rstrip()))
    return content[:place] + b"\xff" + content[place:]


def utf16(random, content):
    del random
    return content.decode("utf-8").encode("utf-16")


def other_json(random, content):
    del content
    return random.choice((b"[]", b"null", b"3", b'"x"', b"[{}]", b"true"))


def too_deep(random, content):
    del content
    depth = random.choice((200, 2000, 100_000))
    return b'{"a": ' + b"[" * depth + b"]" * depth + b"}"


def endless_integer(random, content):
    del content
    return b'{"vocab_size": ' + b"9" * random.choice((5000, 100_000)) + b"}"


def empty(random, content):
    del random, content
    return b""


def noise(random, content):
    return b"\x08" + random.randbytes(len(content) // 2)


WRONG_JSON = (cut_text, no_utf8, utf16, other_json, too_deep)


def json_object(*fields, values=(None, -3, "x", [], {})):
    """Damage of a JSON object one of whose fields holds what it must not hold."""

    def wrong_field(random, content):
        value = {**json.loads(content), random.choice(fields): random.choice(values)}
        return json.dumps(value).encode()

    return (*WRONG_JSON, wrong_field)


def json_lines(*fields):
    """Damage of one line, or of one element of an array: a field is gone, or is a number."""

    def wrong_example(random, content):
        lines = content.decode("utf-8").splitlines()
        (is_array, raws) = _raw_examples(lines)
        raw, field = random.choice(raws), random.choice(fields)
        if random.random() < 0.5:
            del raw[field]
        else:
            raw[field] = random.choice((7, None, True, [[3]], {"a": 1}))
        if is_array:
            return json.dumps(raws).encode()
        return "".join(f"{json.dumps(raw)}\n" for raw in raws).encode()

    def broken_line(random, content):
        lines = content.splitlines(keepends=True)
        place = random.choice([i for i, line in enumerate(lines) if len(line) > 40])
        lines[place] = lines[place].rstrip()[: random.randrange(3, 30)] + b"\n"
        return b"".join(lines)

    def deep_line(random, content):
        return content + too_deep(random, b"") + b"\n"

    return wrong_example, broken_line, deep_line, utf16


def _raw_examples(lines):
    text = "\n".join(lines)
    if text.lstrip().startswith("["):
        return True, json.loads(text)
    return False, list(map(json.loads, lines))


def yaml_options(random, content):
    """A file of options that says what no option can say."""
    line = random.choice(
        (
            b"learning_rat: 1.0e-4\n",
            b"train_batch_size: many\n",
            b"train_batch_size: -3\n",
            b"training: 7\n",
            b"random_seed: [1\n",
            b"random_seed: 1\nrandom_seed: 2\n",
            b"\xff\n",
            b"- a\n",
            b"run_mode: dance\n",
            b"task: {learning_rate: 1}\n",
            b"!!python/object/apply:os.system [ls]\n",
            b"a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
            b"c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n"
            b"e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n",
            b"task: " + b"[" * 3000 + b"]" * 3000 + b"\n",
            b"random_seed: " + b"9" * random.choice((400, 5000)) + b"\n",
            b"random_seed: !!int ''\n",
            b"training: !!map [a]\n",
            b"random_seed: 2001-99-99\n",
        )
    )
    return random.choice((content + line, line, content.decode().encode("utf-16")))


def no_vocabulary(random, content):
    """A vocabulary without a token that HotpotQA's inputs need; [SEP] is not in them."""
    words = [b"[UNK]", b"[CLS]"]
    missing = random.choice(words)
    return b"".join(x for x in content.splitlines(keepends=True) if x.strip() != missing)


def cut_file(random, content):
    return content[: random.randrange(1, len(content) - 1)]


def flipped_bit(random, content):
    place = random.randrange(len(content))
    return (
        content[:place] + bytes([content[place] ^ 1 << random.randrange(8)]) + content[place + 1 :]
    )


def cut_records(random, content):
    """TFRecords that end within a record."""
    ends, place = {0}, 0
    while place < len(content):
        place += struct.unpack_from("<Q", content, place)[0] + 16
        ends.add(place)
    return content[: random.choice([end for end in range(len(content)) if end not in ends])]


def wrong_feature(name, random, content):
    """TFRecords in which one feature of one record is not what the model reads."""
    records, place = [], 0
    while place < len(content):
        length = struct.unpack_from("<Q", content, place)[0]
        records.append(content[place + 12 : place + 12 + length])
        place += length + 16
    place = random.randrange(len(records))
    example = tf.train.Example.FromString(records[place])
    feature = example.features.feature[name]
    kind = random.randrange(4)
    if kind == 0:
        del example.features.feature[name]
    elif kind == 1:
        del feature.int64_list.value[-1]
    elif kind == 2:
        feature.int64_list.value[0] = random.choice((-5, 10**6, 2**40))
    else:
        feature.bytes_list.value.append(b"x")
    records[place] = example.SerializeToString()
    with tempfile.NamedTemporaryFile() as file:
        with tf.io.TFRecordWriter(file.name) as writer:
            for record in records:
                writer.write(record)
        return file.read()


def features(name):
    return functools.partial(wrong_feature, name)


def safetensors_header(random, content):
    """A header that says something else than the file holds."""
    size = struct.unpack_from("<Q", content)[0]
    header = json.loads(content[8 : 8 + size])
    name = random.choice([name for name in header if name != "__metadata__"])
    entry = random.choice(
        (
            {**header[name], "shape": [10**6, 3]},
            {**header[name], "dtype": "F99"},
            {**header[name], "data_offsets": [0, 10**9]},
            {},
        )
    )
    packed = json.dumps({**header, name: entry}).encode()
    sizes = (len(packed), 2**40, len(content) * 2)
    return struct.pack("<Q", random.choice(sizes)) + packed + content[8 + size :]


def other_weights(random, content):
    """The weights of another model: one is missing, or of another shape."""
    arrays = safetensors.numpy.load(content)
    name = random.choice([name for name in arrays if "feed_forward" in name])
    if random.random() < 0.5:
        arrays[name] = np.concatenate([arrays[name], arrays[name]])
    else:
        arrays = {key: value for key, value in arrays.items() if "feed_forward" not in key}
    return safetensors.numpy.save(arrays)
