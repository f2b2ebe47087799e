"""MLflow's registry as this project needs it: resolving a model, reading its bytes, publishing what was measured."""
