"""The XGBoost flavour, for models of its scikit-learn API; a bare booster does not say what its numbers mean."""

from __future__ import annotations

from pathlib import Path

from mlflow_privacy_gate.errors import ModelUnusable
from mlflow_privacy_gate.models.mlmodel import read_mlmodel
from mlflow_privacy_gate.models.sklearn_model import SklearnModel, opened
from mlflow_privacy_gate.models.versions import compared, library_version, python_here

NO_PARAMETERS = (
    "MLflow's xgboost flavour keeps no training parameters, so no reference model can be trained from it; log the model with "
    "`mlflow.sklearn.log_model`, or name a training function with `log_splits`"
)


class XgboostLoader:
    """Opens model folders of MLflow's ``xgboost`` flavour."""

    flavour = "xgboost"

    def load(self, folder: Path) -> SklearnModel:
        """Open the model in ``folder``; ModelUnusable with the way out where that fails, and for a bare booster."""
        mlmodel = read_mlmodel(folder)
        estimator, said = opened("mlflow.xgboost", folder)
        if not hasattr(estimator, "get_params"):
            raise ModelUnusable(
                "the model is a bare XGBoost booster, whose numbers may be probabilities, margins or something else; log the "
                "scikit-learn API's model (`xgboost.XGBClassifier` or `XGBRegressor`) instead"
            )
        versions, drift = compared(
            {"xgboost": mlmodel.flavours[self.flavour].get("xgb_version"), "python": mlmodel.python_version},
            {"xgboost": library_version(estimator), "python": python_here()},
        )
        return SklearnModel(
            estimator,
            mlmodel.inputs,
            flavour=self.flavour,
            keeps_parameters=False,
            library_versions=versions,
            warnings=(NO_PARAMETERS, *drift, *said),
        )
