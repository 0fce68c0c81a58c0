"""Fit the simulator's physics to real laps and check the simulator against real races. No Dagster, no network.

    evidence = gather(laps, results, pit_stops, calendar)     # race.* frames; measures each race once
    rows = circuit_rows(evidence, calendar)                   # sim.circuits; fit_circuits(...) does both steps
    circuit = circuit_parameters(rows.iloc[0])                # for the engine
    validation = validate(evidence, results, qualifying, calendar)   # sim.validation; summarise(validation)

`stage` (clean laps) -> `lap_model`, `stops`, `safety_cars`, `overtaking`, `incidents`, `wet` (one effect each) ->
`evidence` (by race) -> `empirical_bayes`, `season_view`, `circuits` (by circuit). `real_race`, `replay`,
`pace_forecast`, `lap_errors`, `validation` and `distributions` compare the engine with real races.
"""
