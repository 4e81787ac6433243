"""A toy to preprocess: words to records. Worker processes import it, so it imports little."""

import dataclasses
import os
import resource

from etcmodel import preprocessing


def read(path):
    """The lines; one that is 'broken' breaks the file."""
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line == "broken\n":
                raise ValueError(f"{path}: broken")
            yield line.strip()


def convert(raw):
    """A record for each word; 'bad' and 'worse' are malformed, 'none' dropped, 'die' the end."""
    if raw == "bad":
        raise ValueError("this is bad")
    if raw == "worse":
        return preprocessing.Converted(
            features=[], problem="this is worse", lines={"left_out": "é worse"}
        )
    if raw == "die":
        os._exit(1)
    words = [] if raw == "none" else raw.split()
    return preprocessing.Converted(
        features=[{"word": [word]} for word in words],
        counts={"dropped": int(raw == "none")},
        lengths={"words": len(words)} if words else {},
        lines={"kept" if words else "left_out": raw},
    )


def make_converter():
    return convert


@dataclasses.dataclass(frozen=True)
class OnAFullDisk:
    """Makes converters; its process can write no large file as long as another file is there."""

    marker: str

    def __call__(self):
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        soft = 1000 if os.path.exists(self.marker) else hard
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        return convert
