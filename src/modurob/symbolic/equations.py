"""`Equations`: the symbolic twin of a model."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import sympy
from numpy.typing import ArrayLike

from modurob.checks import is_number
from modurob.compiler.emit_c import CSources, c_sources
from modurob.equations import links
from modurob.equations.coriolis import ClosedForm
from modurob.equations.vectors import Vec, Wrench
from modurob.errors import StateError, UnknownNameError, choices
from modurob.model import Model
from modurob.model.build import LinkAssembly, assembled, flatten
from modurob.model.options import ModelOptions
from modurob.organism.organism import Organism
from modurob.symbolic import output, size
from modurob.symbolic.exact import Exact
from modurob.symbolic.feedback import FeedbackLinearization, feedback_linearization
from modurob.symbolic.forms import ExpressionWriter
from modurob.symbolic.linear import Linearization, linearize
from modurob.symbolic.links import AXES, SymbolicTree, symbolic_tree
from modurob.symbolic.regressor import Regressor, regressor
from modurob.symbolic.trigonometric import Trig, trig
from modurob.symbolic.vocabulary import Given, NamedSymbol, Vocabulary, chosen, given, label

_ENTRY = re.compile(r"\s*([MCN])\s*\[\s*(\d{1,6})\s*(?:,\s*(\d{1,6})\s*)?\]\s*")
INERTIAL, MOVING = ("m", "J"), ("dq", "ddq", "V", "dV")  # letters that the short form collects


def build_equations(
    organism: Organism,
    options: ModelOptions,
    symbols: str | Collection[str],
    external: Sequence[str],
    limit: float | None,
) -> Equations:
    """See `Organism.equations`."""
    assembly = assembled(organism, options)
    model, words = flatten(assembly, organism), Vocabulary(chosen(symbols))
    tree = symbolic_tree(assembly, model, words)
    if isinstance(external, str) or not all(name in tree.modules for name in external):
        raise UnknownNameError(
            f"external takes a list of modules, got {external!r}: modules are "
            f"{choices(tree.modules)}"
        )
    wrenches = {name: _wrench(name, words) for name in external}
    limit = size.READABLE if limit is None else limit
    return Equations(assembly, model, Exact(tree, wrenches), words, limit)


def _wrench(module: str, words: Vocabulary) -> Wrench:
    def three(letter: str, what: str, unit: str) -> Vec:
        meaning = f"external {what} on {module}, in its frame"
        return Vec([words.variable(letter, (label(module), x), meaning, unit) for x in AXES])

    return Wrench(three("F", "force", "N"), three("n", "torque", "N m"))


class MatrixEntry(NamedTuple):
    """One entry of M, C or N; row and column count from 1, column is 0 in N."""

    matrix: str
    row: int
    column: int

    @property
    def name(self) -> str:
        """As in ``M[1,2]`` or ``N[1]``."""
        return f"{self.matrix}[{self.row},{self.column}]" if self.column else f"N[{self.row}]"


class Equations:
    """Closed forms of an organism: ``M ddq + C dq + N + friction = tau``.

    All expressions are exact and in normal form: sums of rational * parameters * cos or sin of
    angle sums, so equal expressions are identical. C is the Coriolis matrix of Meister 2013 (see
    `Model.closed_form`). With a free base its six velocities come first.

    Attributes:
        model: The numeric twin.
        quantities: All symbols with meaning, unit and the organism's value.
    """

    def __init__(
        self,
        assembly: LinkAssembly,
        model: Model,
        exact: Exact,
        words: Vocabulary,
        limit: float,
        values: tuple[Given, ...] = (),
    ) -> None:
        self.model, self.limit = model, limit
        self._assembly, self._exact, self._words, self._values = assembly, exact, words, values
        self._motion = exact.tree.motion

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """The form in a notebook."""
        from modurob.studio.notebook import bundle

        return bundle(self)

    def __repr__(self) -> str:
        free = sum(quantity.value is not None for quantity in self.quantities)
        return f"<Equations: nv = {self.model.nv}, {free} parameters as symbols>"

    @property
    def title(self) -> str:
        """Number of modules and joints in one line."""
        modules, joints = len(self._exact.tree.modules), len(self.model.joint_names)
        counts = f"{modules} module{'s'[: modules != 1]}, {joints} joint{'s'[: joints != 1]}"
        return f"Equations of motion: {counts}"

    # -- symbols ---------------------------------------------------------------------------------

    @property
    def quantities(self) -> list[NamedSymbol]:
        replaced = self._replaced
        return [q for k, q in enumerate(self._words.quantities) if k not in replaced]

    @property
    def symbols(self) -> dict[str, sympy.Symbol]:
        """SymPy's symbols by name: plain ones, without assumptions."""
        return {quantity.name: sympy.Symbol(quantity.name) for quantity in self.quantities}

    @property
    def values(self) -> dict[sympy.Symbol, float]:
        """The organism's own numbers for its parameters: ``eq.M.subs(eq.values)``."""
        return {
            sympy.Symbol(quantity.name): quantity.value
            for quantity in self.quantities
            if quantity.value is not None
        }

    def substitute(self, values: Mapping[Any, Any] | None = None, **named: Any) -> Equations:
        """The equations with some symbols replaced.

        Args:
            values: Symbol or its name -> a number, or another symbol or name. Joint displacements
                may be replaced by numbers. A string is a name and is never evaluated.
        """
        wanted, words = {**(values or {}), **named}, self._words.copy()
        new = given(wanted, words, self._motion.places, self.model.prismatic, self._replaced)
        given_values = (*self._values, new)
        return Equations(self._assembly, self.model, self._exact, words, self.limit, given_values)

    # -- the matrices ----------------------------------------------------------------------------

    @cached_property
    def M(self) -> sympy.ImmutableMatrix:
        """(nv, nv) mass matrix."""
        return self._matrix("M")

    @cached_property
    def C(self) -> sympy.ImmutableMatrix:
        """(nv, nv) Coriolis matrix as in Meister 2013."""
        return self._matrix("C")

    @cached_property
    def N(self) -> sympy.ImmutableMatrix:
        """(nv, 1) gravity, less what external wrenches do."""
        return self._matrix("N")

    @cached_property
    def friction(self) -> sympy.ImmutableMatrix:
        """(nv, 1) viscous and dry friction; see `modurob.equations.links.friction`."""
        rows: list[Any] = [0] * self._exact.offset
        tree = self._exact.tree
        for *laws, speed in zip(tree.viscous, tree.coulomb, self._motion.speeds, strict=True):
            viscous, coulomb = (self.write(trig(law)) for law in laws)
            v = self.write(Trig.variable(speed))
            rows.append(links.friction(viscous, coulomb, v))
        return sympy.ImmutableMatrix(len(rows), 1, rows)

    @cached_property
    def tau(self) -> sympy.ImmutableMatrix:
        """(nv, 1) generalized forces M ddq + C dq + N + friction."""
        motion = self._motion
        v, a = (
            sympy.Matrix(self.model.nv, 1, [self.write(Trig.variable(k)) for k in numbers])
            for numbers in (
                (*motion.base.twist, *motion.speeds),
                (*motion.base.rate, *motion.rates),
            )
        )
        return sympy.ImmutableMatrix(self.M * a + self.C * v + self.N + self.friction)

    def entry(self, name: str, short: bool = True) -> sympy.Expr:
        """One entry without making the others: ``M[1,2]``, ``C[3,1]``, ``N[2]``, counted from 1.

        Args:
            short: Common factors taken out, masses and velocities collected; else the normal form.
        """
        value = self.exact_entry(self.parse_entry(name))
        return self._writer.short(value) if short else self._writer.expanded(value)

    def exact_entry(self, entry: MatrixEntry) -> Trig:
        """One entry as a trigonometric polynomial, its size checked first."""
        matrix, row, column = entry
        joints = [k - self._exact.offset - 1 for k in (row, column or row)]
        groups = self._words.groups
        if matrix == "N":
            terms = size.terms_of_gravity(self.model, groups, joints[:1])
        else:
            terms = size.terms_of_entry(self.model, groups, *joints)
        size.check_size(terms, self.limit, entry.name, groups)
        return self._exact_entry(entry)

    def parse_entry(self, name: str) -> MatrixEntry:
        """``M[1,2]`` taken apart and checked."""
        match = _ENTRY.fullmatch(name) if isinstance(name, str) else None
        if match is None or (match[1] == "N") != (match[3] is None):
            raise StateError(f"an entry is written like M[1,2], C[1,2] or N[1], got {name!r}")
        row, column = int(match[2]), int(match[3] or 0)
        nv = self.model.nv
        if not 1 <= row <= nv or not (match[1] == "N" or 1 <= column <= nv):
            raise StateError(f"no entry {name}: rows and columns go from 1 to {nv}")
        return MatrixEntry(match[1], row, column)

    def entries(self, matrix: str | None = None) -> list[MatrixEntry]:
        """All entries, of one matrix or of all three."""
        order = range(1, self.model.nv + 1)
        return [
            MatrixEntry(letter, row, column)
            for letter in ("MCN" if matrix is None else matrix)
            for row in order
            for column in ([0] if letter == "N" else order)
        ]

    def evaluate(
        self, q: ArrayLike, v: ArrayLike, values: Mapping[Any, float] | None = None
    ) -> ClosedForm:
        """M, C and N at numbers, for comparison; `Model.closed_form` is far faster.

        Args:
            q, v: (nq,), (nv,) one state.
            values: Numbers for symbols that are not parameters of the organism, such as external
                wrenches, or in place of its own. What `substitute` replaced stays so, joint
                displacements too.
        """
        q, v = self.model.check_configuration(q), self.model.check_velocity(v)
        if q.ndim > 1 or v.ndim > 1:
            raise StateError(f"q and v are one state, got shapes {q.shape} and {v.shape}")
        self._check_size("all of M, C and N")
        motion = self._motion
        numbers = {k: each.value for k, each in enumerate(self._words.quantities)}
        position, quaternion, twist, _ = motion.base
        numbers |= zip([*position, *quaternion, *motion.places], q.tolist(), strict=True)
        numbers |= zip([*twist, *motion.speeds], v.tolist(), strict=True)
        for key, value in (values or {}).items():
            index = self._words.index(str(key), self._replaced)
            if not is_number(value):
                raise StateError(f"{key} takes a finite number, got {value!r}")
            numbers[index] = float(value)
        angles = {joint: numbers[place] for joint, place in enumerate(motion.places)}
        exact = {letter: [self._exact_entry(e) for e in self.entries(letter)] for letter in "MCN"}
        used = set[int]().union(*(each.variables() for each in itertools.chain(*exact.values())))
        unknown = [self._words.quantities[k].name for k in sorted(used) if numbers[k] is None]
        if unknown:
            raise StateError(
                f"no value for {choices(unknown)}: give it as in "
                f"evaluate(q, v, {{{unknown[0]!r}: 1.0}})"
            )
        M, C, N = (
            np.array([each.evaluate(numbers, angles) for each in entries], dtype=float)
            for entries in exact.values()
        )
        square = (self.model.nv, self.model.nv)
        return ClosedForm(M.reshape(square), C.reshape(square), N)

    def as_model(self) -> Model:
        """The numeric twin with accelerations from these formulas: M a = tau - C dq - N - friction.

        Parameters have their values after `substitute`, else the organism's. `simulate` takes the
        equations themselves. Derivatives, energies and poses are the twin's own.
        """
        from modurob.symbolic.analytic import analytic_model

        motion, symbols = self._motion, self._words.symbols
        replaced = [symbols[k].name for k in motion.places if k in self._replaced]
        if replaced:
            raise StateError(f"{choices(replaced)} was replaced: a motion needs it as a symbol")
        position, quaternion, twist, _ = motion.base
        q = [symbols[k] for k in (*position, *quaternion, *motion.places)]
        return analytic_model(self, q, [symbols[k] for k in (*twist, *motion.speeds)])

    # -- on paper --------------------------------------------------------------------------------

    def latex(self, entry: str | None = None, *, document: bool = False) -> str:
        """LaTeX (amsmath): an align* with all entries of M, C and N, or one of them.

        Args:
            entry: Such as ``M[1,2]``; gives the right-hand side alone.
            document: A whole file that pdflatex takes as it is.
        """
        if entry is not None and not document:
            return self._printer.latex(self.exact_entry(self.parse_entry(entry)))
        body = self.written("latex", entry)
        return output.document(body, self.title) if document else body

    def markdown(self, entry: str | None = None) -> str:
        """Markdown with TeX formulas and a table of the symbols."""
        return self.written("markdown", entry)

    def mathml(self, entry: str | None = None) -> str:
        """Presentation MathML, one <math> element for each entry that is not zero."""
        return self.written("mathml", entry)

    def text(self, entry: str | None = None) -> str:
        """Plain text with a list of the symbols."""
        return self.written("text", entry)

    def written(self, form: str, entry: str | None = None) -> str:
        """All entries of M, C and N, or one: as ``text``, ``latex``, ``markdown``, ``mathml``."""
        if form not in output.FORMATS:
            raise StateError(f"no format {form!r}: formats are {choices(output.FORMATS)}")
        if entry is not None:
            return output.written(self, form, [self.parse_entry(entry)], self._printer)
        self._check_size("all of M, C and N")
        needed = [e for e in self.entries() if e.matrix != "M" or e.row <= e.column]
        return output.written(self, form, needed, self._printer)

    def data(self, entry: str | None = None) -> dict[str, Any]:
        """Entries and symbols for machines; entries in SymPy's notation, those not zero."""
        if entry is None:
            self._check_size("all of M, C and N")
        wanted = self.entries() if entry is None else [self.parse_entry(entry)]
        values = {each.name: self.exact_entry(each) for each in wanted}
        return {
            "joints": list(self.model.joint_names),
            "locked": dict(self.model.locked),
            "entries": {
                name: sympy.sstr(self._writer.short(value))
                for name, value in values.items()
                if len(value) or entry is not None
            },
            "symbols": [{"name": q.name, **q._asdict()} for q in self.quantities],
        }

    # -- kinematics ------------------------------------------------------------------------------

    def T(self, reference: str | None, module: str) -> sympy.ImmutableMatrix:
        """(4, 4) pose of a module's frame in that of another one, or in the world for None."""
        self._check_pose(reference, module)
        R, p = self._exact.module_pose(module, reference)
        rows = [[*(R[i, j] for j in range(3)), p[i]] for i in range(3)]
        return self._written([*rows, [0, 0, 0, 1]])

    def V(self, module: str) -> sympy.ImmutableMatrix:
        """(6, 1) twist of a module in its own frame, linear part first."""
        self._check_pose(module)
        twist = self._exact.module_twist(module)
        return self._written([[x] for x in (*twist.v, *twist.w)])

    def J(self, module: str) -> sympy.ImmutableMatrix:
        """(6, nv) Jacobian of a module in its own frame: V = J dq."""
        self._check_pose(module)
        columns = [self._exact.jacobian_column(module, k) for k in range(self.model.nv)]
        return self._written([[(*c.v, *c.w)[i] for c in columns] for i in range(6)])

    # -- other forms -----------------------------------------------------------------------------

    def linearize(self, q: Any = None, v: Any = 0, a: Any = 0) -> Linearization:
        """Small motions about a state, symbolic: M, D, K and A, B of the state space.

        Args:
            q, v, a: Numbers for all joints, one number for each of them, or None to leave the
                symbols in place. The joint forces are those that keep this motion.
        """
        self._check_size("the linearized equations", has_entries=False)
        return linearize(self, self._exact, q, v, a)

    def feedback_linearization(
        self, outputs: Iterable[Any] | None = None, passive: Collection[str] = ()
    ) -> FeedbackLinearization:
        """Lie derivatives of outputs: relative degree, decoupling matrix, zero dynamics.

        Args:
            outputs: Names of joints, or SymPy expressions of ``q1``, ``q2`` ..., as many as there
                are motors; the joints with a motor by default.
            passive: Names of joints without a motor.
        """
        self._check_size("the linearizing feedback", has_entries=False)
        return feedback_linearization(self, outputs, passive)

    def regressor(self) -> Regressor:
        """The equations as a linear map of ten inertial parameters a link, and base parameters.

        Lengths, gravity and the motion are as after `substitute`; masses, centers and inertias are
        those of whole links here, and cannot be replaced before.
        """
        self._check_size("the regressor", has_entries=False)
        words = Vocabulary(self._words.groups - {"mass", "inertia"})
        exact = Exact(symbolic_tree(self._assembly, self.model, words, whole_links=True), {})
        values = []
        for each in self._values:
            self._check_beside_links(each.wanted, words)
            places = exact.tree.motion.places
            values.append(given(each.wanted, words, places, self.model.prismatic))
        return regressor(exact, words, _writer(words, exact.tree), values)

    def to_c(self, name: str = "modurob", dtype: str = "float64") -> CSources:
        """C99 for firmware, with the organism's own numbers: header, source and a test program.

        Args:
            name: What all names in C start with.
            dtype: ``float64`` or ``float32``.
        """
        if self._values:
            raise StateError(
                "to_c() writes the organism's own numbers: change those with "
                "organism.with_parameters(...) instead of substitute()"
            )
        return c_sources(self.model, name, dtype)

    # -- inside ----------------------------------------------------------------------------------

    def _matrix(self, letter: str) -> sympy.ImmutableMatrix:
        self._check_size(f"{letter} as a whole", letter)
        nv, written = self.model.nv, {}
        for entry in self.entries(letter):
            mirrored = written.get((entry.column, entry.row)) if letter == "M" else None
            if mirrored is None:
                mirrored = self._writer.expanded(self._exact_entry(entry))
            written[entry.row, entry.column] = mirrored
        return sympy.ImmutableMatrix(nv, 1 if letter == "N" else nv, list(written.values()))

    def _check_size(self, what: str, letters: str = "MCN", has_entries: bool = True) -> None:
        model, groups = self.model, self._words.groups
        terms = size.terms_of_matrix(model, groups) if letters != "N" else 0
        if "N" in letters:
            rows = range(-self._exact.offset, len(model.joint_names))
            terms += size.terms_of_gravity(model, groups, rows)
        size.check_size(terms, self.limit, what, groups, has_entries)

    def _check_pose(self, *modules: str | None) -> None:
        """A module's pose, twist and Jacobian have about as many terms."""
        terms, known = size.terms_of_poses(self.model), self._exact.tree.modules
        for name in filter(lambda name: name is not None, modules):
            if name not in known:
                raise UnknownNameError(f"no module {name!r}: modules are {choices(known)}")
            size.check_size(terms[known[name].link], self.limit, f"the pose of {name}", ())

    def _exact_entry(self, entry: MatrixEntry) -> Trig:
        matrix, row, column = entry
        if matrix == "N":
            return self._valued(self._exact.bias(row - 1))
        make = self._exact.mass if matrix == "M" else self._exact.coriolis
        return self._valued(make(row - 1, column - 1))

    def _written(self, rows: Sequence[Sequence[Any]]) -> sympy.ImmutableMatrix:
        return sympy.ImmutableMatrix([[self.write(trig(x)) for x in row] for row in rows])

    def write(self, value: Trig) -> sympy.Expr:
        """A polynomial of these equations in normal form, given values in place."""
        return self._writer.expanded(self._valued(value))

    def _valued(self, value: Trig) -> Trig:
        for values in self._values:
            value = values.into(value)
        return value

    def _check_beside_links(self, wanted: Mapping[Any, Any], words: Vocabulary) -> None:
        """Refuse a substitution whose symbols mean something else where links are parameters."""
        mine = {quantity.name: quantity for quantity in self._words.quantities}
        there = {quantity.name: quantity for quantity in words.quantities}
        for key, value in wanted.items():
            new = mine.get(str(value)) if isinstance(value, sympy.Symbol | str) else None
            clash = new is not None and there.get(new.name, new) != new
            if mine[str(key)] != there.get(str(key)) or clash:
                raise StateError(
                    f"the regressor cannot take the substitution of {value!s} for {key}: its "
                    "parameters are those of whole links (m1, hx1, Jxx1, ...); substitute into its "
                    "Y and pi"
                )

    @property
    def _replaced(self) -> frozenset[int]:
        return frozenset().union(*(values.hidden for values in self._values))

    @cached_property
    def _writer(self) -> ExpressionWriter:
        return _writer(self._words, self._exact.tree)

    @cached_property
    def _printer(self) -> output.EquationPrinter:
        return output.EquationPrinter(self._writer, self.quantities)

    def names_in(self, value: Trig) -> set[str]:
        """The symbols of a polynomial."""
        names, places = self._words.quantities, self._motion.places
        found = {names[v].name for term in value.terms() for v, _ in term.powers}
        return found | {names[places[j]].name for term in value.terms() for j, _ in term.angles}


def _writer(words: Vocabulary, tree: SymbolicTree) -> ExpressionWriter:
    letters = [quantity.letter for quantity in words.quantities]
    return ExpressionWriter(
        words.symbols,
        [words.symbols[place] for place in tree.motion.places],
        [k for k, letter in enumerate(letters) if letter in INERTIAL],
        [k for k, letter in enumerate(letters) if letter in MOVING],
    )
