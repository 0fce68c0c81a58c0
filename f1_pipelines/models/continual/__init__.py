"""The ranker that keeps learning: from a pretrained one, over a season boundary, race by race."""
