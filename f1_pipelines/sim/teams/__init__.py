"""How a whole field of teams races: a pit-stop plan for each car, and reactions to rain and safety cars."""
