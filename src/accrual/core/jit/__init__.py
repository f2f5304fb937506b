"""All that knows numba's compiler: kernels, the functions within them, tuples of arrays, and the disk cache.

`kernel` compiles a loop; `njit` and `njit_noinline` compile what a loop calls; `native_tuple` prepares a
tuple of arrays for many calls; `BoundKernel` calls a kernel many times, and can do without its machine code
at first. Where numba's internals have changed, plain `numba.njit` takes their place.
"""

from accrual.core.jit.bound_kernel import BoundKernel as BoundKernel
from accrual.core.jit.bound_kernel import Recipe as Recipe
from accrual.core.jit.bound_kernel import native_tuple as native_tuple
from accrual.core.jit.compiler import fingerprint as fingerprint
from accrual.core.jit.compiler import is_compiled as is_compiled
from accrual.core.jit.compiler import kernel as kernel
from accrual.core.jit.compiler import machine_code as machine_code
from accrual.core.jit.compiler import njit as njit
from accrual.core.jit.compiler import njit_noinline as njit_noinline
from accrual.core.jit.compiler import python_function as python_function
from accrual.core.jit.disk_cache import cache_by_source as cache_by_source
from accrual.core.jit.source_files import source_hash as source_hash
