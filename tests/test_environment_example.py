"""`.env.example` names every setting, with its default."""
import re

import pytest

from f1_pipelines.serve.settings import ServeSettings
from f1_pipelines.settings import PROJECT_ROOT, Settings

EXAMPLE = PROJECT_ROOT / ".env.example"
LINE = re.compile(r"# ([A-Z0-9_]+)=(.*)")


def variables(model: type[Settings] | type[ServeSettings]) -> set[str]:
    prefix = model.model_config.get("env_prefix", "")
    return {field.validation_alias or (prefix + name).upper() for name, field in model.model_fields.items()}


@pytest.fixture
def uncommented(tmp_path, monkeypatch):
    """A `.env` file with all lines of the example uncommented, and no variables of the environment."""
    for name in variables(Settings) | variables(ServeSettings):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(PROJECT_ROOT)
    lines = [LINE.fullmatch(line) for line in EXAMPLE.read_text().splitlines()]
    file = tmp_path / ".env"
    file.write_text("\n".join(f"{line[1]}={line[2]}" for line in lines if line))
    return file


def test_every_variable_is_listed_once_with_its_meaning_above():
    lines = EXAMPLE.read_text().splitlines()
    line_numbers = {match[1]: number for number, line in enumerate(lines) if (match := LINE.fullmatch(line))}
    assert sorted(line_numbers) == sorted(variables(Settings) | variables(ServeSettings))
    assert len(line_numbers) == sum(bool(LINE.fullmatch(line)) for line in lines)
    for name, number in line_numbers.items():
        meaning = lines[number - 1]
        assert meaning.startswith("# ") and meaning.endswith((".", "]")) and not LINE.fullmatch(meaning), name


@pytest.mark.parametrize("model", [Settings, ServeSettings])
def test_every_value_is_the_default(model, uncommented):
    assert model(_env_file=uncommented) == model(_env_file=None)
