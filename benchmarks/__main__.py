"""Every benchmark, one after the other."""
from benchmarks import engine_bench, pipeline, simulator_validation

pipeline.main()
engine_bench.cost_table()
simulator_validation.main()
