"""Invented pages for the tests of OpenKP."""

import json


def element(text, begin, **numbers):
    """A VDOM element; `numbers` replace entries of its features by their place, as `n8=20.0`."""
    feature = [0.0] * 20
    for place, value in numbers.items():
        feature[int(place.removeprefix("n"))] = value
    end = begin + (text.count(" ") + 1 if text else 0)
    return {"Id": 1, "text": text, "feature": feature, "start_idx": begin, "end_idx": end}


def page(*texts, key_phrases=(("red", "rose"),), url="http://example.org/1", **fields):
    """A page in OpenKP's layout with one element for each of the texts."""
    elements, begin = [], 0
    for text in texts:
        elements.append(element(text, begin, n8=20.0))
        begin = elements[-1]["end_idx"]
    raw = {
        "url": url,
        "text": " ".join(texts),
        "VDOM": json.dumps(elements),
        "KeyPhrases": [list(phrase) for phrase in key_phrases],
        **fields,
    }
    return {name: value for name, value in raw.items() if value is not None}


def write_lines(path, pages):
    """Writes a JSONL file; returns its name."""
    text = "".join(line if isinstance(line, str) else f"{json.dumps(line)}\n" for line in pages)
    path.write_text(text, encoding="utf-8")
    return str(path)
