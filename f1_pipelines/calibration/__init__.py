"""The simulator's physics from real laps, and the check of the simulator against real races. No Dagster, no network.

    evidence = gather(laps, results, pit_stops, calendar)     # race.* frames; measured once, race by race
    rows = circuit_rows(evidence, calendar)                   # sim.circuits; fit_circuits(...) does both
    circuit = circuit_parameters(rows.iloc[0])                # for the engine
    validation = validate(evidence, results, qualifying, calendar)   # sim.validation; summarise(validation)

`stage` (clean laps) -> `lap_model`, `stops`, `neutral`, `overtaking`, `incidents`, `wet` (one effect each) ->
`evidence` (race by race) -> `shrink`, `season_view`, `circuits` (by circuit). `real_race`, `replay`, `forecast`,
`lap_errors`, `validation`, `distributions` compare the engine with what happened.
"""
