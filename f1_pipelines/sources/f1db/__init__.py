"""The source `f1db`: complete seasons from an F1DB release."""
