"""`python -m f1_pipelines` is the command `f1`."""
from f1_pipelines.cli.main import main

main()
