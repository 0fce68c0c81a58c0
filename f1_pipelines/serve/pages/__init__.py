"""The pages, for people who would rather look than read. NiceGUI brings everything along: no build step, no network."""
