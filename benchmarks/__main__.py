"""Every benchmark, one after the other."""
from benchmarks import pipeline

pipeline.main()
