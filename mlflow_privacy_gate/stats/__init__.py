"""Statistics of an attack: exact AUC, intervals, TPR at low FPR, power. Pure functions of arrays, usable without MLflow."""
