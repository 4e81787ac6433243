"""Exports without their models, and further predictors of an export that is loaded."""

import os
import shutil
from unittest import mock

from etcmodel import finetuning


class _Folder:
    """The files of an export without its model."""

    def __init__(self, directory):
        self.directory = directory

    def asset(self, name):
        path = os.path.join(self.directory, name)
        return path if os.path.exists(path) else None


def write_assets(task, folder):
    """What `finetuning.export` writes beside the model of a task; the folder as str."""

    def copied(model, directory, assets):
        os.makedirs(directory, exist_ok=True)
        for name, path in assets.items():
            shutil.copy(path, os.path.join(directory, name))
        return directory

    with mock.patch.object(task, "write_export", copied):
        return finetuning.export(None, task, str(folder))


def of_assets(predictor_class, folder, **options):
    """A predictor that makes features, and can predict nothing."""
    with mock.patch.object(predictor_class, "runner_class", _Folder):
        return predictor_class(folder, **options)


def again(predictor, run, **options):
    """A predictor of a run's export with other options, which loads nothing anew."""
    runner = staticmethod(lambda directory: predictor._runner)
    with mock.patch.object(type(predictor), "runner_class", runner):
        return type(predictor)(str(run.export), **options)
