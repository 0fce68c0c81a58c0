"""`f1 --help` lists each command once, in a section; each command's own help ends with examples that are right."""
import shlex

import click
import pytest
from click.testing import CliRunner

from f1_pipelines.cli.help import EXAMPLES, SECTIONS
from f1_pipelines.cli.main import cli


def help_of(*arguments: str) -> str:
    done = CliRunner().invoke(cli, [*arguments, "--help"], prog_name="f1", terminal_width=80)
    assert done.exit_code == 0, done.output
    return done.output


def test_every_command_is_in_one_section_and_has_an_example():
    assert sorted(name for names in SECTIONS.values() for name in names) == sorted(cli.commands)
    assert set(EXAMPLES) == set(cli.commands)


def test_the_help_shows_the_sections_with_a_whole_sentence_for_each_command():
    shown = help_of()
    assert [line[:-1] for line in shown.splitlines() if line[:-1] in SECTIONS] == list(SECTIONS)
    assert "\nCommands:" not in shown and "\nMore:" not in shown and "..." not in shown.split("Look:")[1]
    for names in SECTIONS.values():
        for name in names:
            assert f"\n  {name:<8}  " in shown
    assert "_F1_COMPLETE=bash_source" in shown


def test_a_command_in_no_section_is_listed_all_the_same(monkeypatch):
    monkeypatch.setitem(SECTIONS, "Look", ("query",))
    assert "More:\n  trace     Show" in help_of()


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_examples_stand_in_the_help_and_name_options_that_exist(name):
    shown, command = help_of(name), cli.commands[name]
    for line in EXAMPLES[name]:
        assert f"    {line}\n" in shown + "\n"
        words = [word for word in shlex.split(line) if not word.startswith("F1_")]
        assert words[:2] == ["f1", name]
        context = click.Context(command)
        values, rest, _ = command.make_parser(context).parse_args(words[2:])
        assert rest == []
        for option in command.params:
            if isinstance(values.get(option.name), str) and option.name != "source":  # a folder that need not be here
                option.type_cast_value(context, values[option.name])
