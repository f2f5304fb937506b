"""What one has to read at once stays small: files, classes and functions of the package."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import accrual

PACKAGE = Path(accrual.__file__).parent
FILE_MOST, METHODS_MOST, FUNCTION_MOST = 500, 20, 100  # lines, methods, lines
# The public face: what a user can do is there in one place.
LARGE_CLASSES = {"Bandit", "Client", "AsyncClient"}
# One compiled loop each, with the factory around it: a GPU keeps in registers only what is in one function.
KERNELS = {("engine/cuda/kernels.py", name) for name in ("chain_kernel", "team_kernel", "advance")}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def too_large(name: str, text: str) -> Iterator[str]:
    """Say what is too large in a Python file."""
    if text.count("\n") > FILE_MOST:
        yield f"{name} has {text.count(chr(10))} lines"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef) and node.name not in LARGE_CLASSES:
            methods = {part.name for part in node.body if isinstance(part, Function)}
            if len(methods) > METHODS_MOST:
                yield f"{name}: class {node.name} has {len(methods)} methods"
        if isinstance(node, Function) and (name, node.name) not in KERNELS:
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_MOST:
                yield f"{name}: function {node.name} has {lines} lines"


def test_no_file_class_or_function_is_too_large():
    found = [
        what
        for path in sorted(PACKAGE.rglob("*.py"))
        for what in too_large(path.relative_to(PACKAGE).as_posix(), path.read_text(encoding="utf-8"))
    ]
    assert not found


def test_no_page_file_is_too_large():
    page = PACKAGE / "service" / "dashboard" / "page"
    files = [
        path for end in ("js", "css", "html") for path in page.rglob(f"*.{end}") if "vendor" not in path.parts
    ]
    assert files
    assert not [path.name for path in files if path.read_text(encoding="utf-8").count("\n") > FILE_MOST]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\n" * 501, "has 501 lines"),
        ("class A:\n" + "".join(f"    def f{i}(self): ...\n" for i in range(21)), "class A has 21 methods"),
        ("def f():\n" + "    x = 1\n" * 100, "function f has 101 lines"),
        ("async def f():\n" + "    x = 1\n" * 100, "function f has 101 lines"),
    ],
)
def test_what_is_too_large_is_seen(text, said):
    assert [what.removeprefix("a.py").removeprefix(": ").strip() for what in too_large("a.py", text)] == [
        said
    ]
