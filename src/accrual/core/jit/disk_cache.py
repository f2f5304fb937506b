"""Keep compiled kernels on disk, under a key that is the source of everything that goes into them.

numba's own caches look at the file of a kernel alone, so they would miss an edit to a policy that the kernel
calls. And they never find a kernel that closes over compiled functions again, because their key has the
identity of these functions, which differs in every process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def cache_by_source(cache_class: Any, file_class: Any, function: Callable[..., Any], source: str) -> Any:
    """Make a cache of `cache_class`, one of numba's, for `function` with `source` in its key.

    Parameters
    ----------
    cache_class : type
        ``FunctionCache`` of numba or ``CUDACache`` of numba-cuda.
    file_class : type
        ``IndexDataCacheFile`` of the same package.
    function : callable
        The kernel before it is compiled.
    source : str
        A hash of all source that goes into the kernel (`accrual.core.jit.fingerprint`).
    """

    class KernelCache(cache_class):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(function)
            name = f"{self._impl.filename_base}-{source[:16]}"
            self._cache_file = file_class(self._cache_path, name, source)

        def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
            return (sig, codegen.magic_tuple(), source)

        def has(self, sig: Any, target_context: Any) -> bool:
            try:
                return self._index_key(sig, target_context.codegen()) in self._cache_file._load_index()
            except Exception:  # it will be written again
                return False

        def load_overload(self, sig: Any, target_context: Any) -> Any:
            try:
                found = super().load_overload(sig, target_context)
            except Exception:  # a cache file that cannot be read is a miss, never a failure
                found = None
            if found is None:
                from accrual.core.progress import say_compiling  # here, as no kernel's results depend on it

                say_compiling()
            return found

        def save_overload(self, sig: Any, data: Any) -> None:
            try:
                try:
                    super().save_overload(sig, data)
                except Exception:  # an index that cannot be read is replaced
                    self._cache_file.flush()
                    super().save_overload(sig, data)
            except Exception:  # a full or read-only disk costs the cache, not the result
                self.disable()

    return KernelCache()
