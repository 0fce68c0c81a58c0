"""The strategies of a whole field: a pit-stop plan for each car, and reactions to rain and safety cars."""
