"""MLflow: runs, metrics and the champion checkpoint. mlflow is imported only when a store is opened."""
