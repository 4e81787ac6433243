"""Runs code as where the core is installed alone: `python -m tests.without_extras FILE ARGS…`."""

import runpy
import sys

EXTRAS = {
    "apache_beam": "beam",
    "google_crc32c": "beam",
    "jinja2": "plots",
    "lxml": "text",
    "matplotlib": "plots",
    "official": "train",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "optuna": "sweep",
    "orbit": "train",
    "punkt": "text",
    "pyarrow": "parquet",
    "rouge_score": "train",
    "sentencepiece": "text",
    "tensorflow_text": "serve",
    "tf2onnx": "onnx",
    "tokenizers": "text",
    "tqdm": "train",
    "zstandard": "zstd",
}


class Missing:
    """A finder of modules that finds those of extras missing."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        del path, target
        if name.partition(".")[0] in EXTRAS:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


if __name__ == "__main__":
    sys.meta_path.insert(0, Missing)
    del sys.argv[0]
    if sys.argv[0].endswith(".py"):
        runpy.run_path(sys.argv[0], run_name="__main__")
    else:
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
