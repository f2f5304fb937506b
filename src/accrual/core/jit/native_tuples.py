"""Native tuples: a tuple of arrays in the form in which compiled code reads it.

A call from Python converts a tuple array by array, a quarter of a microsecond for each. For a kernel
that is called for every event, that is most of its time. A native tuple is converted once, when it
is made. A call then passes one pointer, however many arrays there are. The same holds for calls among
compiled functions: in a plain tuple every array would be half a dozen arguments, and compiling takes time in
proportion.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.core.datamodel import models, registry
from numba.core.extending import infer_getattr, lower_getattr_generic, lower_setattr_generic
from numba.core.imputils import impl_ret_borrowed
from numba.core.typing.templates import AttributeTemplate
from numba.experimental import structref

from accrual.core.jit.compiler import kernel


class _NativeTupleType(types.StructRef):
    """The numba type of a `_NativeTuple`: its one field is the tuple, whose fields are its attributes."""

    @property
    def key(self) -> Any:
        """What makes two types the same: their fields, not their names, which two classes may share."""
        return type(self), self._fields

    @property
    def tuple(self) -> Any:
        return self.field_dict["value"]


class _NativeTuple(structref.StructRefProxy):
    """The Python object that stands for a native tuple."""


registry.default_manager.register(_NativeTupleType, models.StructRefModel)
structref.define_proxy(_NativeTuple, _NativeTupleType, ["value"])


@infer_getattr
class _Attributes(AttributeTemplate):
    key = _NativeTupleType

    def generic_resolve(self, native: Any, name: str) -> Any:  # type: ignore[override]
        kind = native.tuple
        if name == "value":
            return kind
        return kind.types[kind.fields.index(name)] if name in kind.fields else None


# Where numba keeps the address of what a structref refers to.
_MEMORY = ir.LiteralStructType([ir.IntType(64), *[ir.IntType(8).as_pointer()] * 3])


def _load_once(builder: Any, place: Any) -> Any:
    """Load what no compiled code changes after a tuple is made, so that it is loaded once."""
    loaded = builder.load(place)
    loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
    return loaded


def _address(context: Any, builder: Any, kind: Any, native: Any) -> Any:
    owner = cgutils.create_struct_proxy(kind)(context, builder, value=native).meminfo
    address = _load_once(builder, cgutils.gep(builder, builder.bitcast(owner, _MEMORY.as_pointer()), 0, 3))
    payload = context.data_model_manager[kind.get_data_type()].get_value_type()
    return builder.bitcast(address, payload.as_pointer())


@lower_setattr_generic(_NativeTupleType)
def _store_tuple(context: Any, builder: Any, signature: Any, given: Any, name: str) -> None:
    """Store the tuple, once, into memory that nothing has been stored in."""
    kind, value = signature.args
    context.nrt.incref(builder, value, given[1])
    builder.store(given[1], cgutils.gep(builder, _address(context, builder, kind, given[0]), 0, 0))


@lower_getattr_generic(_NativeTupleType)
def _load_field(context: Any, builder: Any, kind: Any, native: Any, name: str) -> Any:
    """Load one field of the tuple, and nothing else.

    numba's own code for this cannot be used in functions that do not count references.
    """
    address = _address(context, builder, kind, native)
    place = kind.tuple.fields.index(name)
    loaded = _load_once(builder, cgutils.gep(builder, address, 0, 0, place))
    return impl_ret_borrowed(context, builder, kind.tuple.types[place], loaded)


@kernel
def _make(value: Any) -> Any:
    return _NativeTuple(value)


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
    fields = [native_tuple(field) if isinstance(field, tuple) else field for field in value]
    return tuple(fields) if type(value) is tuple else _make(type(value)(*fields))
