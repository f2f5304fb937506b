"""Native tuples: a tuple of arrays in the form in which compiled code reads it.

A call from Python converts a tuple array by array, a quarter of a microsecond for each. For a kernel
that is called for every event, that is most of its time. A native tuple is converted once, when it
is made. A call then passes one address, however many arrays there are. The same holds for calls among
compiled functions: in a plain tuple every array would be half a dozen arguments, and compiling takes time in
proportion.

At the address are words of 8 bytes: for a number the number, for a named tuple its own address, and for an
array what numba's array structure has. A plain tuple of named tuples is their addresses.
"""

from __future__ import annotations

import hashlib
import struct
from typing import Any

import numpy as np
from llvmlite import ir
from numba import config, typeof, types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.core.extending import NativeValue, infer_getattr, lower_getattr_generic, register_model, unbox
from numba.core.imputils import impl_ret_borrowed
from numba.core.typing.templates import AttributeTemplate

_WORD = 8  # bytes


class _NativeTupleType(types.Type):
    """The numba type of a `_NativeTuple`: the names of its fields, their types, and their first words."""

    native = True

    def __init__(self, names: tuple[str, ...], kinds: tuple[Any, ...]) -> None:
        self.names, self.kinds = names, kinds
        self.words = [0]
        for kind in kinds:
            length = 5 + 2 * kind.ndim if isinstance(kind, types.Array) else getattr(kind, "count", 1)
            self.words.append(self.words[-1] + length)
        # A short name: numba writes the types of all arguments into the name of each compiled function.
        text = repr([(name, kind.name) for name, kind in zip(names, kinds, strict=True)])
        super().__init__(f"native{hashlib.sha256(text.encode()).hexdigest()[:16]}")


class _NativeTuple:
    """The Python object that stands for a native tuple; it keeps what is at the address."""

    def __init__(self, value: Any) -> None:
        self.fields = [native_tuple(field) if isinstance(field, tuple) else field for field in value]
        words: list[Any] = []
        form = ""
        for field in self.fields:
            if isinstance(field, np.ndarray):
                words += [0, 0, field.size, field.itemsize, field.__array_interface__["data"][0]]
                words += [*field.shape, *field.strides]
                form += f"{5 + 2 * field.ndim}q"
            else:
                inner = field if isinstance(field, tuple) else (field,)
                words += [part.address if isinstance(part, _NativeTuple) else part for part in inner]
                form += "".join("d" if isinstance(part, float) else "q" for part in inner)
        self._block = np.frombuffer(struct.pack(form, *words), np.uint8)
        self.address: int = self._block.__array_interface__["data"][0]
        self._numba_type_ = _NativeTupleType(value._fields, tuple(map(typeof, self.fields)))


register_model(_NativeTupleType)(models.OpaqueModel)  # an address


@unbox(_NativeTupleType)
def _unbox(kind: Any, native: Any, c: Any) -> Any:
    number = c.pyapi.object_getattr_string(native, "address")
    address = c.pyapi.long_as_voidptr(number)
    c.pyapi.decref(number)
    return NativeValue(address)


@infer_getattr
class _Attributes(AttributeTemplate):
    key = _NativeTupleType

    def generic_resolve(self, native: Any, name: str) -> Any:  # type: ignore[override]
        return native.kinds[native.names.index(name)] if name in native.names else None


@lower_getattr_generic(_NativeTupleType)
def _load_field(context: Any, builder: Any, native: Any, address: Any, name: str) -> Any:
    """Load one field. No compiled code changes it after the tuple is made, so it is loaded once."""
    place = native.names.index(name)
    kind = native.kinds[place]
    stored = ir.IntType(64) if isinstance(kind, types.Boolean) else context.get_value_type(kind)
    where = cgutils.pointer_add(builder, address, _WORD * native.words[place], stored.as_pointer())
    loaded = builder.load(where)
    loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
    if isinstance(kind, types.Boolean):
        loaded = builder.trunc(loaded, ir.IntType(1))
    return impl_ret_borrowed(context, builder, kind, loaded)


def native_tuple(value: Any) -> Any:
    """Convert a named tuple of arrays for passing it to kernels, which read its fields by their names.

    A named tuple within it, or within a plain tuple in it, becomes a native tuple as well. The arrays are
    shared and not copied: what a kernel writes into them is seen in Python too.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> import numpy as np
    >>> from accrual.core.jit.compiler import kernel
    >>> class Count(NamedTuple):
    ...     number: np.ndarray
    >>> @kernel
    ... def count(native):
    ...     native.number[0] += 1
    >>> number = np.zeros(1)
    >>> count(native_tuple(Count(number)))
    >>> number
    array([1.])
    """
    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        return value
    return _NativeTuple(value) if hasattr(value, "_fields") else tuple(map(native_tuple, value))
