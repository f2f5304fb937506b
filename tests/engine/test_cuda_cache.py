"""What is kept of a CUDA kernel on disk, with a stand-in for the compiled kernel: no GPU is needed."""

from types import SimpleNamespace
from typing import Any

import pytest

from accrual.core.errors import need
from accrual.engine.cuda import compiler

GPU = SimpleNamespace(magic_tuple=lambda: ("cc 9.0",))
CONTEXT = SimpleNamespace(codegen=lambda: GPU, refresh=lambda: None)


class Kernel(SimpleNamespace):
    """A compiled kernel, as far as a cache looks at it."""

    def __init__(self, machine_code: str) -> None:
        library = SimpleNamespace(_llvm_strs=["long"], _ptx_cache={"long": 1})
        super().__init__(machine_code=machine_code, library=library, codegen=GPU)

    def _reduce_states(self) -> dict[str, Any]:
        assert self.library._llvm_strs == []  # the machine code alone is kept
        assert self.library._ptx_cache == {}
        return {"machine_code": self.machine_code}


@pytest.fixture
def caches(tmp_path, monkeypatch):
    """Make a kernel's cache as a new process would: of a function that is another object each time."""
    if compiler.SIMULATED:
        pytest.skip("the simulator compiles nothing")
    dispatchers = need("numba.cuda.dispatcher", "cuda")
    monkeypatch.setattr(need("numba.cuda.core.config", "cuda"), "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(dispatchers._Kernel, "_rebuild", Kernel)

    def make(code: str) -> Any:
        def play() -> None: ...

        return compiler._disk_cache(play, code)

    return make


def test_a_later_process_finds_the_kernel_of_the_same_source_and_types(caches):
    caches("source 1").save_overload(("int64",), Kernel("first"))
    assert caches("source 1").load_overload(("int64",), CONTEXT).machine_code == "first"
    assert caches("source 1").load_overload(("float64",), CONTEXT) is None
    assert caches("source 2").load_overload(("int64",), CONTEXT) is None
    other = SimpleNamespace(
        codegen=lambda: SimpleNamespace(magic_tuple=lambda: ("cc 8.0",)), refresh=lambda: None
    )
    assert caches("source 1").load_overload(("int64",), other) is None


def test_a_damaged_file_is_a_miss_and_is_written_again(caches, tmp_path):
    caches("source").save_overload(("int64",), Kernel("first"))
    for file in tmp_path.rglob("*.nb?"):
        file.write_bytes(b"no longer what it was")
    assert caches("source").load_overload(("int64",), CONTEXT) is None
    caches("source").save_overload(("int64",), Kernel("again"))
    assert caches("source").load_overload(("int64",), CONTEXT).machine_code == "again"


def test_where_nothing_can_be_written_the_kernel_is_used_all_the_same(caches, monkeypatch):
    cache = caches("source")
    monkeypatch.setattr(cache, "_cache_file", None)
    cache.save_overload(("int64",), Kernel("first"))  # and nothing is raised
    assert caches("source").load_overload(("int64",), CONTEXT) is None
