"""What is to be run for which weekend, and when: the calendar, the runs so far and the news, judged without Dagster."""
