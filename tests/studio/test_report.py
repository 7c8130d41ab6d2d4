"""The report: which parts it has, and how it says what it leaves out."""

import re

import numpy as np
import pytest
import sympy

from modurob import Organism, SizeError, StateError, Undock, examples, simulate
from modurob.scenario.settings import RunRecord
from modurob.studio import exports, formulas
from modurob.studio.project import NEW_SETTINGS


@pytest.fixture(autouse=True)
def no_image(monkeypatch):
    monkeypatch.setattr(exports, "_image", lambda organism: "<img>")


def request(organism, title="my <crab>", **changes):
    settings = NEW_SETTINGS.edited(hinges="physical")
    return exports.ExportRequest(title, "crab", organism, settings, **changes)


def report(organism, trajectory=None, **changes):
    told = []
    text = exports.html(request(organism, **changes), trajectory, told.append)
    assert told == [0.2, 0.4, 0.7]
    return text


def headings(text):
    return re.findall(r"<h2>(.*?)</h2>", text)


def test_an_organism_has_matrices_and_one_module_has_none():
    alone = ["Joints", "Denavit-Hartenberg table", "Equations of motion"]
    pair = report(examples.snake(2))
    assert headings(pair) == [
        "Assembly incidence matrix", "Accessibility", "Direct transforms and dyad classes",
        "Indirect transforms", *alone,
    ]  # fmt: skip
    assert "<h1>my &lt;crab&gt;</h1>" in pair
    assert "2 modules (2 backbone), base m0, 2 kg." in pair
    one = report(Organism.start("backbone"))
    assert headings(one) == alone
    assert "1 module (1 backbone), base m0, 1 kg." in one


def shown(text):
    return text.count('<div class="formula">')


def test_terms_stand_with_their_signs_and_the_first_one_without_plus():
    x = sympy.Symbol("x")
    found = [formulas._sign(term, index) for index in (0, 1) for term in (x, -x)]
    infix = '<mo form="infix">'
    assert found == ["", "<mo>−</mo>", f"{infix}+</mo>", f"{infix}−</mo>"]


def test_entries_that_are_too_many_or_too_long_are_counted(monkeypatch):
    """A double pendulum has M11, M12, M22, four entries of C and two of N."""
    asked = request(examples.double_pendulum())
    whole = exports._equations(asked)
    assert shown(whole) == 9
    assert '<caption class="sr-only">Symbols</caption>' in whole
    assert '<td class="left">q2</td>' in whole
    assert shown(exports._equations(request(examples.crane()))) == 7  # C11 and N1 are zero
    assert "M is symmetric; entries that are not shown are zero." in whole
    monkeypatch.setattr(exports, "MOST_ENTRIES", 9)
    assert exports._equations(asked) == whole
    monkeypatch.setattr(exports, "MOST_ENTRIES", 8)
    cut = exports._equations(asked)
    assert "1 entries are too long for a page; export C99 or LaTeX to have them." in cut
    assert shown(cut) == 8
    monkeypatch.setattr(exports, "MOST_ENTRIES", 9)
    entries = [e for e in asked.equations().entries() if e.name != "M[2,1]"]
    terms = [len(asked.equations().exact_entry(e)) for e in entries]
    longest = max(terms)
    monkeypatch.setattr(formulas, "MOST_TERMS", longest)
    assert exports._equations(asked) == whole
    monkeypatch.setattr(formulas, "MOST_TERMS", longest - 1)
    left = terms.count(longest)
    assert f"{left} entries are too long" in exports._equations(asked)
    assert shown(exports._equations(asked)) == 9 - left


def test_terms_are_shown_and_unfolded_up_to_their_limits(monkeypatch):
    asked = formulas.EntryRequest(request(examples.double_pendulum()), "all", "M[1,1]")
    whole = formulas.entry(asked, lambda done: None)
    pieces = whole["mathml"].count("<math ")
    assert whole["shown"] == whole["terms"] > pieces > 1  # a cosine stands for some
    assert "details" not in whole["mathml"]
    monkeypatch.setattr(formulas, "MOST_TERMS", whole["terms"])
    monkeypatch.setattr(formulas, "UNFOLDED", pieces)
    assert formulas.entry(asked, lambda done: None) == whole
    monkeypatch.setattr(formulas, "UNFOLDED", pieces - 1)
    assert "<summary>1 more terms</summary>" in formulas.entry(asked, lambda done: None)["mathml"]
    monkeypatch.setattr(formulas, "MOST_TERMS", whole["terms"] - 1)
    cut = formulas.entry(asked, lambda done: None)
    assert (cut["shown"], cut["mathml"].count("⋯")) == (whole["terms"] - 1, 1)


def test_entries_that_are_not_computed_are_counted(monkeypatch):
    asked = request(examples.double_pendulum())

    def refuse(self, entry):
        raise SizeError(f"{entry} is too long")

    monkeypatch.setattr(type(asked.equations()), "exact_entry", refuse)
    assert "9 entries are too long" in exports._equations(asked)


def record(**changed):
    facts = {"number": 1, "title": "a fall", "status": "finished", "seconds": 0.1, "took": 1.0}
    return RunRecord(**{**facts, "settings": NEW_SETTINGS, **changed})


def test_a_run_is_told_with_its_events_settings_and_what_went_wrong():
    organism = examples.snake(3)
    model = organism.model("physical", base="free", gravity=(0, 0, 0))
    run = simulate(model, None, np.zeros(8), 0.1, None, "RK4", dt=0.02,
                   events=[Undock(0.05, "m2")], organism=organism)  # fmt: skip
    text = report(organism, run, record=record(message="too <fast>", status="stopped"))
    assert headings(text)[-3:] == ["Run", "Events", "Settings of the run"]
    assert "<p>a fall: 0.1 s, stopped.</p><p>too &lt;fast&gt;</p>" in text
    assert "<li>0.0500 s  undock m2" in text
    assert "<metadata>" not in text
    assert "changed after this run" not in text
    rows = re.findall(r'<th class="left"[^>]*>(.*?)</th>', text)
    assert "settling time" in rows
    assert not {"rates", "events"} & set(rows)
    other = report(examples.snake(4), run, record=record())
    assert "The body was changed after this run,</b> which has 3 modules and the base m0" in other
    assert headings(report(organism, run))[-1] == "Equations of motion"  # nothing known of it


def test_formats_of_a_run_are_those_that_are_refused_without_one():
    """A body alone can be exported in all others."""
    needing = {name for name, form in exports.FORMATS.items() if form.needs_run}
    assert needing == {
        *("plots-svg", "plots-png", "scenario", "csv", "npz", "gif", "mp4", "viewer-run")
    }
    for name in needing:
        with pytest.raises(StateError, match="press Run"):
            exports.make(name, request(examples.snake(2)), lambda done: None)


def test_formulas_tell_their_progress_and_keep_the_equations_for_the_next_entry(monkeypatch):
    asked = request(examples.double_pendulum())
    made, told = [], []
    equations = type(asked).equations

    def counted(self, *args):
        made.append(args)
        return equations(self, *args)

    monkeypatch.setattr(type(asked), "equations", counted)
    monkeypatch.setattr(formulas, "_held", None)
    for symbols, entry in (("all", "M[1,1]"), ("all", "C[1,2]"), ("none", "N[1]")):
        wanted = formulas.EntryRequest(asked, symbols, entry)
        assert formulas.entry(wanted, told.append)["entry"] == entry
    assert told == [0.3, 0.6] * 3
    assert made == [("all",), ("none",)]
    text = formulas.latex(formulas.EntryRequest(asked, "none", "N[2]"), told.append)
    assert text.startswith("N_{2} = ")
    assert told[6:] == [0.3]
    assert len(made) == 2
