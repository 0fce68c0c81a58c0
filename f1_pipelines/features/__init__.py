"""What was known of each car before lights out: pure functions, frames in and frames out."""
