"""The names that ``import accrual`` offers: the same for type checkers as for Python."""

import ast
import importlib
import inspect

import accrual as ac
from accrual.policies.catalog import CATALOG, CONTEXTUAL


def test_type_checkers_see_the_names_that_python_does():
    (block,) = (node for node in ast.parse(inspect.getsource(ac)).body if isinstance(node, ast.If))
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    named = {alias.asname: (node.module, alias.name) for node in imports for alias in node.names}
    assert named.pop(None) == ("accrual.policies", "*")
    assert {*named, *CATALOG, *CONTEXTUAL} == {*ac.__all__}
    for name, (module, inner) in named.items():
        found = importlib.import_module(str(module))
        inside = f"{module}.{inner}"
        value = getattr(found, inner) if hasattr(found, inner) else importlib.import_module(inside)
        assert getattr(ac, str(name)) is value, name


def test_the_paper_and_the_gallery_offer_their_functions():
    for module, names in (
        (ac.paper, ("setting1", "setting2", "spotify")),
        (ac.gallery, ("problem", "select", "policies", "choose", "play")),
    ):
        assert all(inspect.isfunction(getattr(module, name)) for name in names)
