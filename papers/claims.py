"""Claims of a document, and what we find: collected, judged, written to ``results.json``.

What a document says stands in ``expected.json`` beside its ``reproduce.py``: for each claim a name,
where it is made, the expected value and how far from it we may be. The script only computes.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from modurob.executors import Executor, LocalExecutor

PAPERS = Path(__file__).parent


class Claim(NamedTuple):
    """One statement of a document next to what we find.

    Attributes:
        source: Equation, figure or table of the document.
        relation: ``=`` within `tolerance` (exactly, if it is None), ``<=`` or ``>=``.
        passed: None when it could not be looked at; `note` says why.
    """

    name: str
    source: str
    found: Any
    expected: Any
    tolerance: float | None
    passed: bool | None
    relation: str = "="
    unit: str = ""
    note: str = ""


class Claims:
    """The claims of one document.

    Args:
        key: Its folder under ``papers``.
        output: Where pictures and ``results.json`` go.
        progress: Told what is being computed.
        executor: Of runs that do not depend on each other; by default this process.
    """

    def __init__(
        self,
        key: str,
        output: Path,
        progress: Callable[[str], None] | None = None,
        executor: Executor | None = None,
    ) -> None:
        text = (PAPERS / key / "expected.json").read_text(encoding="utf-8")
        self.key, self.output, self._progress = key, output, progress
        self.executor = executor or LocalExecutor(1)
        self.document = json.loads(text)["document"]
        self._expected: dict[str, dict[str, Any]] = json.loads(text)["claims"]
        self._found: dict[str, Claim] = {}
        self.pictures: list[Path] = []
        output.mkdir(parents=True, exist_ok=True)

    def working_on(self, what: str) -> None:
        """Say what is being computed."""
        if self._progress is not None:
            self._progress(what)

    def expected(self, key: str) -> Any:
        """What the document says."""
        return self._expected[key]["expected"]

    def check(self, key: str, found: Any, note: str = "") -> None:
        """Compare a result with the claim of this name in ``expected.json``."""
        found = _plain(found)
        self._found[key] = self._claim(key, found, self._holds(key, found), note)

    def leave_out(self, key: str, reason: str) -> None:
        """A claim that cannot be looked at here."""
        self._found[key] = self._claim(key, None, None, reason)

    def picture(self, name: str) -> Path:
        """Where a picture goes."""
        self.pictures.append(self.output / name)
        return self.pictures[-1]

    @property
    def results(self) -> list[Claim]:
        """All claims in the order of the document; one that was forgotten has failed."""
        return [
            self._found.get(key) or self._claim(key, None, False, "was not computed")
            for key in self._expected
        ]

    @property
    def passed(self) -> bool:
        """Whether no claim failed."""
        return all(claim.passed is not False for claim in self.results)

    def write(self, seconds: float) -> None:
        """Leave ``results.json`` beside the pictures."""
        data = {
            "paper": self.key,
            "document": self.document,
            "passed": self.passed,
            "seconds": round(seconds, 1),
            "pictures": [path.name for path in self.pictures],
            "claims": [claim._asdict() for claim in self.results],
        }
        text = json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False)
        (self.output / "results.json").write_text(text + "\n", encoding="utf-8")

    def _claim(self, key: str, found: Any, passed: bool | None, note: str) -> Claim:
        known = self._expected[key]
        return Claim(
            known["name"],
            known["source"],
            found,
            known["expected"],
            known.get("tolerance"),
            passed,
            known.get("relation", "="),
            known.get("unit", ""),
            note or known.get("note", ""),
        )

    def _holds(self, key: str, found: Any) -> bool:
        known = self._expected[key]
        expected, tolerance = known["expected"], known.get("tolerance")
        match known.get("relation", "="):
            case "<=":
                return bool(found is not None and found <= expected)
            case ">=":
                return bool(found is not None and found >= expected)
        if tolerance is None:
            return bool(found == expected)
        numbers = np.array(found, dtype=float)  # None becomes NaN, which is close to nothing
        if numbers.shape != np.shape(expected):
            return False
        return bool(np.all(np.abs(numbers - expected) <= tolerance))


def _plain(value: Any) -> Any:
    """Numbers and lists that JSON can hold; what is not finite is None and fails."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    return None if isinstance(value, float) and not np.isfinite(value) else value


def run(
    key: str,
    reproduce: Callable[[Claims], None],
    output: Path,
    progress: Callable[[str], None] | None = None,
    executor: Executor | None = None,
) -> Claims:
    """Compute all claims of a document and write the results."""
    begin = time.perf_counter()
    claims = Claims(key, output, progress, executor)
    reproduce(claims)
    claims.write(time.perf_counter() - begin)
    return claims


def main(key: str, reproduce: Callable[[Claims], None]) -> None:
    """What ``python -m papers.<key>.reproduce`` does."""
    parser = argparse.ArgumentParser(description=f"Compute the claims of {key} again.")
    folder = PAPERS.parent / "output" / "papers" / key
    parser.add_argument("--output", type=Path, default=folder, help="folder for the results")
    given = parser.parse_args()
    claims = run(key, reproduce, given.output, lambda what: print(f"... {what}", flush=True))
    for claim in claims.results:
        verdict = {True: "passed", False: "FAILED", None: "left out"}[claim.passed]
        print(f"{verdict:<8}  {claim.source:<22}  {claim.name}")
    print(f"results and pictures: {claims.output}")
    sys.exit(0 if claims.passed else 1)
