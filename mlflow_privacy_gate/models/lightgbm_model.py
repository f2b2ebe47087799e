"""The LightGBM flavour, for models of its scikit-learn API; a bare booster does not say what its numbers mean."""

from __future__ import annotations

from pathlib import Path

from mlflow_privacy_gate.errors import ModelUnusable
from mlflow_privacy_gate.models.mlmodel import read_mlmodel
from mlflow_privacy_gate.models.sklearn_model import SklearnModel, opened
from mlflow_privacy_gate.models.versions import compared, library_version, python_here


class LightgbmLoader:
    """Opens model folders of MLflow's ``lightgbm`` flavour, which keeps the training parameters."""

    flavour = "lightgbm"

    def load(self, folder: Path) -> SklearnModel:
        """Open the model in ``folder``; ModelUnusable with the way out where that fails, and for a bare booster."""
        mlmodel = read_mlmodel(folder)
        estimator, said = opened("mlflow.lightgbm", folder)
        if not hasattr(estimator, "get_params"):
            raise ModelUnusable(
                "the model is a bare LightGBM booster, whose numbers may be probabilities, margins or something else; log the "
                "scikit-learn API's model (`lightgbm.LGBMClassifier` or `LGBMRegressor`) instead"
            )
        versions, drift = compared(
            {"lightgbm": mlmodel.flavours[self.flavour].get("lgb_version"), "python": mlmodel.python_version},
            {"lightgbm": library_version(estimator), "python": python_here()},
        )
        return SklearnModel(
            estimator,
            mlmodel.inputs,
            flavour=self.flavour,
            library_versions=versions,
            warnings=(*drift, *said),
        )
