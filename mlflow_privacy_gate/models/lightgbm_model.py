"""The LightGBM flavour, for models of its scikit-learn API."""

from __future__ import annotations

from mlflow_privacy_gate.models.booster import BoosterLoader


class LightgbmLoader(BoosterLoader):
    """Opens model folders of MLflow's ``lightgbm`` flavour, which keeps the training parameters."""

    flavour = "lightgbm"
    library = "LightGBM"
    wrappers = "`lightgbm.LGBMClassifier` or `LGBMRegressor`"
    version_key = "lgb_version"
