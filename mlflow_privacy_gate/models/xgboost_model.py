"""The XGBoost flavour, for models of its scikit-learn API."""

from __future__ import annotations

from mlflow_privacy_gate.models.booster import BoosterLoader


class XgboostLoader(BoosterLoader):
    """Opens model folders of MLflow's ``xgboost`` flavour."""

    flavour = "xgboost"
    library = "XGBoost"
    wrappers = "`xgboost.XGBClassifier` or `XGBRegressor`"
    version_key = "xgb_version"
    no_parameters = (
        "MLflow's xgboost flavour keeps no training parameters, so no reference model can be trained from it; log the model with "
        "`mlflow.sklearn.log_model`, or name a training function with `log_splits`"
    )
