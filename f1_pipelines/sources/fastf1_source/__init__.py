"""The source `fastf1`. Importing it does not import FastF1."""
from f1_pipelines.sources.fastf1_source.source import FastF1Source

__all__ = ["FastF1Source"]
