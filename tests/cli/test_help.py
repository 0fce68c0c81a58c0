"""`f1 --help` lists each command once, in a section; each command's own help ends with valid examples."""
import shlex

import click
import pytest
from click.testing import CliRunner

from f1_pipelines.cli.help import EXAMPLES, SECTIONS
from f1_pipelines.cli.main import cli


def help_of(*arguments: str) -> str:
    result = CliRunner().invoke(cli, [*arguments, "--help"], prog_name="f1", terminal_width=80)
    assert result.exit_code == 0, result.output
    return result.output


def test_every_command_is_in_one_section_and_has_an_example():
    assert sorted(name for names in SECTIONS.values() for name in names) == sorted(cli.commands)
    assert set(EXAMPLES) == set(cli.commands)


def test_the_help_shows_the_sections_with_a_whole_sentence_for_each_command():
    text = help_of()
    assert [line[:-1] for line in text.splitlines() if line[:-1] in SECTIONS] == list(SECTIONS)
    assert "\nCommands:" not in text and "\nMore:" not in text and "..." not in text.split("Look:")[1]
    for names in SECTIONS.values():
        for name in names:
            assert f"\n  {name:<8}  " in text
    assert "_F1_COMPLETE=bash_source" in text


def test_a_command_in_no_section_is_listed_under_more(monkeypatch):
    monkeypatch.setitem(SECTIONS, "Look", ("query",))
    assert "More:\n  trace     Show" in help_of()


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_the_help_ends_with_examples_of_existing_options(name):
    text, command = help_of(name), cli.commands[name]
    for line in EXAMPLES[name]:
        assert f"    {line}\n" in text + "\n"
        words = [word for word in shlex.split(line) if not word.startswith("F1_")]
        assert words[:2] == ["f1", name]
        context = click.Context(command)
        values, rest, _ = command.make_parser(context).parse_args(words[2:])
        assert rest == []
        for option in command.params:
            if isinstance(values.get(option.name), str) and option.name != "source":  # a folder that need not exist
                option.type_cast_value(context, values[option.name])
