"""The source `sample`: complete seasons driven by our own engine. Every row says that it is not real."""
from f1_pipelines.sources.sample.circuits import true_parameters
from f1_pipelines.sources.sample.source import SAMPLE_END, SampleSource

__all__ = ["SAMPLE_END", "SampleSource", "true_parameters"]
