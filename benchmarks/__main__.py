"""Every benchmark, one after the other: `make bench`, five minutes."""
from benchmarks import (
    continual,
    engine_bench,
    engineer_bench,
    environment_bench,
    pipeline,
    serve_bench,
    simulator_validation,
)

for table in (pipeline.main, continual.cost, engine_bench.cost_table, environment_bench.main,
              simulator_validation.main, serve_bench.main, engineer_bench.main):
    table()
