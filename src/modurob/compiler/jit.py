"""LLVM IR to machine code, in the process and on disk."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import threading
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from modurob.modules.files import replace_file

OPTIMISATION = 2  # of the code generator; the trace has done the rest
CACHE_VARIABLE = "MODUROB_CACHE_DIR"


class Host:
    """The machine that code is made for."""

    def __init__(self) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self.cpu = llvm.get_host_cpu_name()
        self.features = llvm.get_host_cpu_features().flatten()
        features = llvm.get_host_cpu_features()
        self.width = 8 if features.get("avx512f") else 4 if features.get("avx") else 2
        self.triple = llvm.get_process_triple()

    def target_machine(self) -> Any:
        target = llvm.Target.from_triple(self.triple)
        return target.create_target_machine(
            cpu=self.cpu,
            features=self.features,
            opt=OPTIMISATION,
            reloc="default",
            codemodel="jitdefault",
        )


@cache
def host() -> Host:
    """The machine we run on."""
    return Host()


class Library:
    """Compiled functions; keeps the code alive."""

    def __init__(self, engine: Any, compiled: bool) -> None:
        self._engine = engine
        self.compiled = compiled  # False when it came from the disk cache

    def address(self, name: str) -> int:
        """Where a function starts."""
        return self._engine.get_function_address(name)

    def constant(self, name: str) -> int:
        """Where a global constant lies."""
        return self._engine.get_global_value_address(name)

    def function(self, name: str, *argument_types: Any) -> Any:
        """A callable without result that releases the GIL."""
        return ctypes.CFUNCTYPE(None, *argument_types)(self.address(name))


_lock = threading.Lock()
_libraries: dict[str, Library] = {}


def compile_ir(ir: str) -> Library:
    """The functions of an IR module, from this process, the disk cache, or newly compiled."""
    key = hashlib.sha256(
        "\n".join(
            (ir, host().cpu, host().features, llvmlite.__version__, str(OPTIMISATION))
        ).encode()
    ).hexdigest()
    with _lock:
        if key not in _libraries:
            _libraries[key] = _load(key, ir)
        return _libraries[key]


def _load(key: str, ir: str) -> Library:
    machine = host().target_machine()
    path = _cache_folder() / f"{key}.o"
    code = _read(path)
    compiled = code is None
    if code is None:
        module = llvm.parse_assembly(ir)
        module.triple = host().triple
        module.data_layout = str(machine.target_data)
        code = machine.emit_object(module)
        _write(path, code)
    empty = llvm.parse_assembly("")
    engine = llvm.create_mcjit_compiler(empty, machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return Library(engine, compiled)


def _cache_folder() -> Path:
    if CACHE_VARIABLE in os.environ:
        return Path(os.environ[CACHE_VARIABLE])
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "modurob"


def _read(path: Path) -> bytes | None:
    try:
        code = path.read_bytes()
    except OSError:
        return None
    digest, code = code[:32], code[32:]
    return code if hashlib.sha256(code).digest() == digest else None  # a torn file is no cache


def _write(path: Path, code: bytes) -> None:
    """Best effort: a read-only home only costs the next start some milliseconds."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, hashlib.sha256(code).digest() + code)
