"""Help pages of `f1`: commands in sections, with examples."""
from __future__ import annotations

import click

SECTIONS = {
    "Look": ("query", "trace"),
    "Predict and race": ("predict", "race", "policies"),
    "Run": ("demo", "serve"),
    "Look after": ("doctor", "promote", "backup", "restore", "reset"),
}
EXAMPLES = {
    "query": ('f1 query "SELECT weekend, race_start FROM race.calendar WHERE season = 2026"',
              "f1 query --format csv --file warehouse/queries/ranking_table.sql"),
    "trace": ("f1 trace 2026-monaco", "f1 trace 7f9588d5e285 --rebuild"),
    "predict": ("f1 predict next", "f1 predict 2026-monaco --stage qualifying --format json"),
    "race": ("f1 race --family late_safety_car --seed 3 --policy expert",
             "f1 race --family grand_prix --weekend 2026-monaco --driver leclerc --seed 1 --policy expert"),
    "policies": ("f1 policies --n 10 --workers 2",),
    "demo": ("f1 demo --engineer none", "F1_SOURCE=f1db f1 demo --verbose"),
    "serve": ("f1 serve --port 8080",),
    "doctor": ("f1 doctor --deep", "f1 doctor --free-pools"),
    "promote": ("f1 promote 7f9588d5e285", "f1 promote --back"),
    "backup": ("f1 backup", "f1 backup /mnt/safe/f1-2026-monaco"),
    "restore": ("f1 restore", "f1 restore /mnt/safe/f1-2026-monaco"),
    "reset": ("f1 reset", "f1 reset --yes"),
}
_FIRST_STEPS = ("f1 demo", "f1 predict next", "f1 query --help",
                'eval "$(_F1_COMPLETE=bash_source f1)"   # completion; also zsh_source, fish_source')


class CommandGroup(click.Group):
    """Lists commands in sections, the others under "More"; a command's own help ends with its examples."""

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Register a command with its examples."""
        super().add_command(cmd, name)
        if lines := EXAMPLES.get(name or cmd.name or ""):
            cmd.epilog = _verbatim(*lines)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one list per section, all with the same column width."""
        listed = {name for names in SECTIONS.values() for name in names}
        more = [name for name in self.list_commands(ctx) if name not in listed]
        width = max(map(len, self.list_commands(ctx)))
        for title, names in [*SECTIONS.items(), ("More", more)]:
            rows = [(f"{name:<{width}}", command.get_short_help_str(formatter.width - width - 4)) for name in names
                    if (command := self.get_command(ctx, name)) and not command.hidden]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the first steps."""
        formatter.write_paragraph()
        formatter.write_text(_verbatim(*_FIRST_STEPS))


def _verbatim(*lines: str) -> str:
    """Format command lines as an epilog without wrapping."""
    return "\n".join(["\b", "Example:" if len(lines) == 1 else "Examples:", *(f"  {line}" for line in lines)])
