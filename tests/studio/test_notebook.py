"""Forms of values in notebooks."""

import base64
import io

import numpy as np
from PIL import Image

import modurob as mr
from modurob import Organism, examples
from modurob.drawing import charts
from modurob.studio import exports, notebook


def image(bundle):
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(bundle["image/png"]))).convert("RGB"))


def test_an_organism_is_a_picture():
    crab = examples.crab()
    found = crab._repr_mimebundle_(include=None, exclude=None)
    assert found["text/plain"] == repr(crab)
    assert len(np.unique(image(found).reshape(-1, 3), axis=0)) > 50


def test_a_report_has_a_larger_picture(monkeypatch):
    sizes = []
    for module in (notebook, exports):
        monkeypatch.setattr(
            module, "picture", lambda body, size: sizes.append(size) or charts.blank((1, 1))
        )
    notebook.bundle(examples.snake(2))
    assert exports._image(examples.snake(2)).startswith('<img alt="The organism" src="data:image/')
    assert sizes == [560, 900]


def test_an_incidence_matrix_keeps_its_columns():
    html = examples.crab().aim()._repr_html_()
    assert html.startswith('<pre style="font-family:monospace">    e1  e2')


def test_measures_of_a_walk_are_a_table_with_units():
    found = mr.walking.WalkMetrics(2.0, 0.5, 0.25, 0.0, 0.0, 3.0, *[np.inf] * 2, np.nan, *[0.0] * 2)
    assert found._repr_html_().splitlines()[:2] == [
        '<pre style="font-family:monospace">distance           0.500 m in 2 s (0.250 m/s)',
        "heading            0 deg from x",
    ]
    assert "slip               none: it went nowhere" in str(found)


def test_a_model_is_a_table_of_its_joints_with_escaped_names():
    model = examples.crab().model(hinges="physical")
    html = model._repr_mimebundle_()["text/html"]
    assert all(f">{name}<" in html for name in model.joint_names)
    assert html.startswith("<p>Model: nq = 6")


def test_equations_are_formulas_and_long_ones_are_text():
    pendulum = examples.double_pendulum().equations(hinges="physical")
    assert pendulum._repr_mimebundle_()["text/html"].count("<math") == 9
    assert "text/html" not in examples.snake(9).equations()._repr_mimebundle_()


def test_a_run_is_a_plot_and_what_cannot_be_drawn_is_text():
    model = examples.double_pendulum().model(hinges="physical")
    run = mr.simulate(model, [0.5, 0.0], np.zeros(2), 0.1)
    assert image(run._repr_mimebundle_()).shape[2] == 3
    assert Image.open(io.BytesIO(run.plot("q")._repr_png_())).format == "PNG"
    bare = Organism.start(mr.catalog["backbone"].model_copy(update={"shapes": ()}))
    assert bare._repr_mimebundle_() == {"text/plain": repr(bare)}


def test_bodies_and_formulas_are_shown_up_to_their_limits(monkeypatch):
    monkeypatch.setattr(notebook, "picture", lambda body, size: charts.blank((1, 1)))
    crane = examples.crane().equations(hinges="physical")
    length = len(crane.mathml())
    for more, shown in ((0, True), (-1, False)):
        monkeypatch.setattr(notebook, "MOST_MODULES", 2 + more)
        assert ("image/png" in notebook.bundle(examples.snake(2))) is shown
        monkeypatch.setattr(notebook, "LONGEST_FORMULAS", length + more)
        assert ("text/html" in notebook.bundle(crane)) is shown


def test_large_bodies_are_not_drawn_unasked():
    assert set(examples.snake(201)._repr_mimebundle_()) == {"text/plain"}
