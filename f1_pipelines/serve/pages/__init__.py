"""The web pages, built with NiceGUI: no build step, and nothing loads from other hosts."""
