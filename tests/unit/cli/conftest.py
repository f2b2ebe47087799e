from mlflow_home import mlflow_home, mlflow_store

__all__ = ["mlflow_home", "mlflow_store"]
