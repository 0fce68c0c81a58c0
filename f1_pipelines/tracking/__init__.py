"""What goes to MLflow: runs, metrics, and which checkpoint is champion. mlflow is imported by whoever opens a store."""
