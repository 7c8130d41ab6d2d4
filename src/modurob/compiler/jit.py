"""LLVM IR to machine code, in the process and on disk."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import sys
import threading
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from modurob.errors import StateError, choices
from modurob.modules.files import replace_file

OPTIMIZATION = 2  # of the code generator; expressions are simplified before
CACHE_VARIABLE = "MODUROB_CACHE_DIR"
WIDTH_VARIABLE, WIDTHS = "MODUROB_VECTOR_WIDTH", ("2", "4", "8")
CPU_VARIABLE, CPUS = "MODUROB_CPU", ("host", "generic")


class Host:
    """The machine that code is made for.

    Attributes:
        cpu, features: As LLVM names them; ``generic`` has what every CPU of its kind has.
        width: States that a vector holds. Any width runs on any CPU: LLVM splits wide vectors.
    """

    def __init__(self) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        features = {}
        self.cpu = _chosen(CPU_VARIABLE, CPUS) or "host"
        if self.cpu == "host":
            self.cpu = llvm.get_host_cpu_name()
            with contextlib.suppress(RuntimeError):  # unknown to LLVM on some systems
                features = llvm.get_host_cpu_features()
        named = sorted(features.items())
        self.features = ",".join(f"{'+' if on else '-'}{name}" for name, on in named)
        widest = 8 if features.get("avx512f") else 4 if features.get("avx") else 2
        self.width = int(_chosen(WIDTH_VARIABLE, WIDTHS) or widest)
        self.triple = llvm.get_process_triple()

    def target_machine(self) -> Any:
        target = llvm.Target.from_triple(self.triple)
        return target.create_target_machine(
            cpu=self.cpu,
            features=self.features,
            opt=OPTIMIZATION,
            reloc="default",
            codemodel="jitdefault",
        )


@cache
def host() -> Host:
    """The machine we run on."""
    return Host()


def _chosen(variable: str, values: tuple[str, ...]) -> str | None:
    """The value of an environment variable; None where it is unset or empty."""
    value = os.environ.get(variable)
    if value and value not in values:
        raise StateError(
            f"the environment variable {variable} is {value!r}: set it to one of "
            f"{choices(values)}, or unset it"
        )
    return value or None


@cache
def _linker() -> Any:
    """LLVM's ORC; JITLink keeps code and constants together, as ARM's short addresses need it.

    JITLink is young for the object files of Windows, where ORC has its older linker.
    """
    young = sys.platform == "win32"
    return llvm.create_lljit_compiler(host().target_machine(), use_jit_link=not young)


class Library:
    """Compiled functions and constants; keeps the code alive."""

    def __init__(self, key: str, code: bytes, compiled: bool) -> None:
        linked = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
        self._key, self._linked = key, {"": linked.link(_linker(), key)}
        self._lock = threading.Lock()
        self.compiled = compiled  # False when it came from the disk cache

    def address(self, name: str) -> int:
        """Address of a function or a global constant."""
        with self._lock:  # a second result of one lookup would take the code along when it goes
            if name not in self._linked:
                self._linked[name] = _linker().lookup(self._key, name)
            return self._linked[name][name]

    def function(self, name: str, *argument_types: Any) -> Any:
        """A callable without result that releases the GIL."""
        return ctypes.CFUNCTYPE(None, *argument_types)(self.address(name))


_lock = threading.Lock()
_libraries: dict[str, Library] = {}


def compile_ir(ir: str) -> Library:
    """The functions of an IR module, from this process, the disk cache, or newly compiled.

    The key of the cache is the text, which spells out the vector width, and what LLVM is told.
    """
    key = hashlib.sha256(
        "\n".join(
            (ir, host().cpu, host().features, llvmlite.__version__, str(OPTIMIZATION))
        ).encode()
    ).hexdigest()
    with _lock:
        if key not in _libraries:
            _libraries[key] = _load(key, ir)
        return _libraries[key]


def _load(key: str, ir: str) -> Library:
    machine = host().target_machine()
    folder = cache_folder()
    path = None if folder is None else folder / f"{key}.o"
    code = None if path is None else _read(path)
    compiled = code is None
    if code is None:
        module = llvm.parse_assembly(ir)
        module.triple = host().triple
        module.data_layout = str(machine.target_data)
        code = machine.emit_object(module)
        if path is not None:
            _write(path, code)
    return Library(key, code, compiled)


def cache_folder() -> Path | None:
    """The folder of the disk cache; None when it is switched off or there is no home folder.

    No folder under /tmp in its place: others could put code there for us to run.
    """
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen is not None:
        return Path(chosen) if chosen else None
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "modurob"
    except RuntimeError:  # no HOME, and no entry for this user in the system's list
        return None


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
