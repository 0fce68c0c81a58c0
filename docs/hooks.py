"""Hooks of mkdocs: the site gets mermaid from the installed NiceGUI, so that no page asks another host for it."""
from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any


def mermaid_folder() -> Path | None:
    """The ES module of mermaid that NiceGUI brings; None where it is not installed or has moved."""
    nicegui = find_spec("nicegui")
    places = nicegui.submodule_search_locations if nicegui else None
    folder = Path(places[0]) / "elements" / "mermaid" / "dist" if places else None
    return folder if folder and (folder / "index.js").is_file() else None


def on_post_build(config: Any) -> None:
    """Copy mermaid into the built site.

    Raises:
        RuntimeError: NiceGUI's copy is not where it was; the message says what to do.
    """
    folder = mermaid_folder()
    if folder is None:
        raise RuntimeError("mermaid is not at nicegui/elements/mermaid/dist: install requirements.lock (`make setup`), "
                           "or, if a newer NiceGUI moved it, correct docs/hooks.py.")
    shutil.copytree(folder, Path(config["site_dir"]) / "assets" / "mermaid", dirs_exist_ok=True,
                    ignore=shutil.ignore_patterns("*.map"))
