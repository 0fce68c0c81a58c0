"""The source `sample`: whole seasons driven by our own engine. Nobody may take them for real: every row says so."""
from f1_pipelines.sources.sample.circuits import true_parameters
from f1_pipelines.sources.sample.source import STANDS_STILL, SampleSource

__all__ = ["STANDS_STILL", "SampleSource", "true_parameters"]
