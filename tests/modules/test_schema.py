"""The published JSON schemas are those of the code, and the catalog's files follow them.

To write them anew after a change: ``python tests/modules/test_schema.py``
"""

import json
from importlib import resources
from pathlib import Path

import jsonschema
import pytest

from modurob import ModuleType, catalog, examples
from modurob.organism.files import OrganismFile

FOLDER = Path(__file__).parents[2] / "docs" / "schema"
PUBLISHED = {"module.schema.json": ModuleType, "organism.schema.json": OrganismFile}


def text_of(model):
    return json.dumps(model.model_json_schema(), indent=1, ensure_ascii=False) + "\n"


def read(name):
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_schema_is_that_of_the_code(name):
    assert read(name) == PUBLISHED[name].model_json_schema()
    assert (FOLDER / name).read_text(encoding="utf-8") == text_of(PUBLISHED[name])


@pytest.mark.parametrize("kind", catalog.names())
def test_every_file_of_the_catalog_follows_the_published_schema(kind):
    file = resources.files("modurob.modules.catalog") / f"{kind}.json"
    validator = jsonschema.Draft202012Validator(read("module.schema.json"))
    validator.validate(json.loads(file.read_text(encoding="utf-8")))
    data = json.loads(file.read_text(encoding="utf-8"))
    with pytest.raises(jsonschema.ValidationError, match="mass"):
        validator.validate(data | {"mass": 1})
    validator.validate(data | {"$schema": "module.schema.json"})


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_schemas_say_what_a_file_is(name):
    schema = read(name)
    assert {"format", "version"} <= set(schema["required"])
    assert schema["title"].startswith("modurob ")
    assert "SI units" in schema["description"]
    assert "$id" not in schema


@pytest.mark.parametrize(
    "organism",
    [examples.crab(), examples.nine(), examples.crane(), examples.arm(), examples.superbot_tree()],
    ids=["crab", "nine", "crane", "arm", "superbots"],
)
def test_saved_organisms_follow_the_published_schema(organism, tmp_path):
    organism.save(tmp_path / "organism.json")
    validator = jsonschema.Draft202012Validator(read("organism.schema.json"))
    validator.validate(json.loads((tmp_path / "organism.json").read_text(encoding="utf-8")))


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, model in PUBLISHED.items():
        (FOLDER / name).write_text(text_of(model), encoding="utf-8")
