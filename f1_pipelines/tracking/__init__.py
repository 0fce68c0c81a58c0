"""What MLflow is told: runs, curves, and which checkpoint is champion. mlflow is imported by whoever opens a store."""
