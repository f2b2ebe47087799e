"""``mlflow-privacy-gate`` and ``python -m mlflow_privacy_gate``."""

from mlflow_privacy_gate.cli.program import main

if __name__ == "__main__":
    main()
