"""Boosted trees of libraries with a scikit-learn API of their own; a bare booster does not say what its numbers mean."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from mlflow_privacy_gate.errors import ModelUnusable
from mlflow_privacy_gate.models.mlmodel import read_mlmodel
from mlflow_privacy_gate.models.sklearn_model import SklearnModel, opened
from mlflow_privacy_gate.models.versions import compared, library_version, python_here


class BoosterLoader:
    """Opens model folders of one such library's flavour.

    ``library`` and ``wrappers`` are for messages; ``version_key`` is where the flavour keeps the library's version. ``no_parameters`` says
    that MLflow's flavour keeps no training parameters, None where it keeps them.
    """

    flavour: ClassVar[str]
    library: ClassVar[str]
    wrappers: ClassVar[str]
    version_key: ClassVar[str]
    no_parameters: ClassVar[str | None] = None

    def load(self, folder: Path) -> SklearnModel:
        """Open the model in ``folder``; ModelUnusable with the way out where that fails, and for a bare booster."""
        mlmodel = read_mlmodel(folder)
        estimator, said = opened(f"mlflow.{self.flavour}", folder)
        if not hasattr(estimator, "get_params"):
            raise ModelUnusable(
                f"the model is a bare {self.library} booster, whose numbers may be probabilities, margins or something else; log the "
                f"scikit-learn API's model ({self.wrappers}) instead"
            )
        versions, drift = compared(
            {self.flavour: mlmodel.flavours[self.flavour].get(self.version_key), "python": mlmodel.python_version},
            {self.flavour: library_version(estimator), "python": python_here()},
        )
        return SklearnModel(
            estimator,
            mlmodel.inputs,
            flavour=self.flavour,
            keeps_parameters=self.no_parameters is None,
            library_versions=versions,
            warnings=(*((self.no_parameters,) if self.no_parameters else ()), *drift, *said),
        )
