"""Names that share one line of a docstring (`lower, upper: limits`), for the pages of the API."""

import re

import griffe

NAMES = re.compile(r"^ +\w+(?:, \w+)+(?=: )", re.MULTILINE)


class JointNames(griffe.Extension):
    """Joins such names by no-break spaces: the parser takes what follows a space for a type."""

    def on_object(self, *, obj: griffe.Object, **kwargs) -> None:
        if obj.docstring is not None:
            text = NAMES.sub(lambda m: m[0].replace(", ", ",\u00a0"), obj.docstring.value)
            obj.docstring.value = text
