"""The source `f1db`: whole seasons from an F1DB release."""
