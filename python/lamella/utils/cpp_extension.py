"""Builds C++ extensions against the installed headers, with PyTorch's names.

With a setup.py use ``CppExtension``, or ``CUDAExtension`` for sources of which some are nvcc's, and
``BuildExtension``. Without one use ``load`` and
``load_inline``, which keep their build folder, so that a second call with the same sources builds
nothing.
"""

from __future__ import annotations

import copy
import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from lamella.utils import _cuda_extension as _cuda
from lamella.utils import include_paths as _own_include_paths
from lamella.utils import library_paths as _own_library_paths

IS_WINDOWS = sys.platform == "win32"
IS_MACOS = sys.platform == "darwin"
IS_LINUX = sys.platform.startswith("linux")
CUDA_HOME = _cuda.find_home()
# Extensions for other devices are not supported.
ROCM_HOME = None
CUDNN_HOME = None
SYCL_HOME = None
IS_HIP_EXTENSION = False

# The headers need this standard, so it replaces the one that a package requests.
_STANDARD = "-std=c++20"
_OTHER = "expected sources for the CPU or CUDA: Lamella builds no extensions for SYCL"


def include_paths(device_type: str = "cpu", torch_include_dirs: bool = True) -> list[str]:
    """The folders of the headers, with PyTorch's names, of pybind11, and for "cuda" of CUDA's."""
    if device_type not in ("cpu", "cuda"):
        raise RuntimeError(f"include_paths: {_OTHER}, got device_type={device_type!r}")
    found = _own_include_paths() + _pybind_include_paths()
    return found + _cuda.include_paths("include_paths") if device_type == "cuda" else found


def library_paths(
    device_type: str = "cpu", torch_include_dirs: bool = True, cross_target_platform: Any = None
) -> list[str]:
    """The folder of liblamella.so."""
    return _own_library_paths()


def _pybind_include_paths() -> list[str]:
    # Debian's pybind11-dev is on the compiler's default path and is no Python package.
    if importlib.util.find_spec("pybind11") is None:
        return []
    import pybind11

    return [pybind11.get_include()]


def _library() -> str:
    # A wheel has no symbolic link without the version.
    return next(
        (name for name in ("liblamella.so.1",) if os.path.exists(f"{library_paths()[0]}/{name}")),
        "liblamella.so",
    )


def _link_flags() -> list[str]:
    folder = library_paths()[0]
    return [f"-L{folder}", f"-l:{_library()}", f"-Wl,-rpath,{folder}"]


def get_cxx_compiler() -> str:
    """The compiler: the environment's CXX, or c++."""
    return os.environ.get("CXX", "c++")


def check_compiler_ok_for_platform(compiler: str) -> bool:
    """Whether the compiler exists."""
    return shutil.which(shlex.split(compiler)[0]) is not None


def check_compiler_is_gcc(compiler: str) -> bool:
    """Whether the compiler calls itself GCC."""
    run = subprocess.run([*shlex.split(compiler), "-v"], capture_output=True, text=True)
    return "gcc version" in run.stderr


def get_compiler_abi_compatibility_and_version(compiler: str) -> tuple[bool, tuple[int, ...]]:
    """Whether the compiler can build extensions, and its version."""
    command = [*shlex.split(compiler), "-dumpfullversion", "-dumpversion"]
    run = subprocess.run(command, capture_output=True, text=True)
    version = tuple(int(part) for part in run.stdout.strip().split(".") if part.isdigit())
    return run.returncode == 0, version


def is_ninja_available() -> bool:
    """Whether ninja is on the path."""
    return shutil.which("ninja") is not None


def verify_ninja_availability() -> None:
    """Raises RuntimeError if ninja is missing."""
    if not is_ninja_available():
        raise RuntimeError("verify_ninja_availability: expected ninja on the path, found none")


# ---- setup.py ------------------------------------------------------------------------------------


def CppExtension(name: str, sources: Sequence[str], *args: Any, **kwargs: Any) -> Any:
    """A setuptools.Extension with Lamella's headers and library."""
    import setuptools  # type: ignore[import-untyped]

    kwargs["include_dirs"] = list(kwargs.get("include_dirs", [])) + include_paths()
    kwargs["extra_link_args"] = list(kwargs.get("extra_link_args", [])) + _link_flags()
    kwargs.pop("py_limited_api", None)
    kwargs["language"] = "c++"
    return setuptools.Extension(name, list(sources), *args, **kwargs)


def CUDAExtension(name: str, sources: Sequence[str], *args: Any, **kwargs: Any) -> Any:
    """A setuptools.Extension with CUDA's headers and runtime as well; nvcc compiles its .cu files.

    ``extra_compile_args`` may have flags by compiler: ``{"cxx": [...], "nvcc": [...]}``.
    Architectures are those of TORCH_CUDA_ARCH_LIST, or of the cards that are there.
    """
    if kwargs.pop("dlink", False) or kwargs.pop("dlink_libraries", []):
        raise RuntimeError("CUDAExtension: expected no dlink: device code is not linked separately")
    include = [*kwargs.get("include_dirs", []), *_cuda.include_paths("CUDAExtension")]
    link = [*kwargs.get("extra_link_args", []), *_cuda.link_flags("CUDAExtension")]
    kwargs.update(include_dirs=include, extra_link_args=link)
    return CppExtension(name, sources, *args, **kwargs)


def SyclExtension(name: str, sources: Sequence[str], *args: Any, **kwargs: Any) -> Any:
    """Always raises RuntimeError: extensions for SYCL are not supported."""
    raise RuntimeError(f"SyclExtension: {_OTHER}")


def _cxx_flags(given: Any) -> list[str]:
    """The C++ flags of an extension, with the standard that the headers need."""
    flags = given.get("cxx", []) if isinstance(given, dict) else given or []
    return [flag for flag in flags if not flag.startswith("-std=")] + [_STANDARD]


# Matches code that uses modules, optimizers, data sets or serialization.
_NETWORKS = re.compile(
    r"\b(?:nn|optim|data|serialize)\s*::|torch/(?:nn|optim|data|serialize)|\bTORCH_MODULE"
    r"|\btorch::(?:nn|optim|data|serialize|save|load)\b|\bnamespace\s+torch\s*[;{]"
)
_HEADERS = (".h", ".hh", ".hpp", ".hxx", ".cuh", ".inc", ".inl", ".ipp", ".tcc")
_MAX_HEADERS = 1000


def _mentions_networks(sources: Sequence[str], include_dirs: Sequence[str]) -> bool:
    """Whether a source, or a header that it could include, matches _NETWORKS.

    True if there are too many headers to read.
    """
    ours = {os.path.realpath(path) for path in include_paths()}
    folders = {os.path.realpath(os.path.dirname(source) or ".") for source in sources}
    folders |= {os.path.realpath(path) for path in include_dirs}
    files = list(sources)
    for folder in sorted(folders - ours):
        for place, _, names in os.walk(folder):
            files += [os.path.join(place, name) for name in names if name.endswith(_HEADERS)]
            if len(files) > _MAX_HEADERS:
                return True
    for path in files:
        with open(path, encoding="utf-8", errors="replace") as file:
            if _NETWORKS.search(file.read()):
                return True
    return False


def _name_flags(name: str, sources: Sequence[str], include_dirs: Sequence[str] = ()) -> list[str]:
    """The macros that describe the extension to the headers.

    torch/torch.h includes torch/extension.h only if a source uses pybind11, and torch/nn.h and
    similar headers only if the code uses them: each costs up to a second per file to compile.
    """
    flags = [f"-DTORCH_EXTENSION_NAME={name}"]
    if not _mentions_networks(sources, include_dirs):
        flags.append("-DLAMELLA_WITHOUT_NETWORKS")
    for source in sources:
        with open(source, encoding="utf-8", errors="replace") as file:
            if re.search(r"pybind11|PYBIND11|\bpy::", file.read()):
                return [*flags, "-DTORCH_API_INCLUDE_EXTENSION_H"]
    return flags


def _openmp_link(flags: Sequence[str], link: Sequence[str]) -> list[str]:
    """The linker flag for code compiled with OpenMP, since Lamella's library does not link it."""
    return ["-fopenmp"] if "-fopenmp" in flags and "-fopenmp" not in link else []


def _compile_by_nvcc(compiler: Any, flags: Sequence[str]) -> None:
    """Makes a compiler of setuptools compile .cu files by nvcc, with these flags."""
    if ".cu" not in compiler.src_extensions:
        compiler.src_extensions = [*compiler.src_extensions, ".cu"]
    compile_host = type(compiler)._compile

    def compile_one(obj: str, src: str, ext: str, cc: Any, post: Any, options: Any) -> None:
        if ext != ".cu":
            return compile_host(compiler, obj, src, ext, cc, post, options)
        compiler.spawn([_cuda.nvcc("build_ext"), *options, *flags, "-c", src, "-o", obj])
        return None

    compiler._compile = compile_one


def _build_extension_class() -> type:
    from setuptools.command.build_ext import build_ext  # type: ignore[import-untyped]

    class BuildExtension(build_ext):
        """setuptools' build_ext for extensions made by CppExtension."""

        parallel: Any
        by_nvcc: dict[str, list[str]]  # nvcc's flags, by extension

        @classmethod
        def with_options(cls, **options: Any) -> type:
            """A subclass with other default options: no_python_abi_suffix, use_ninja, …."""

            class cls_with_options(cls):  # type: ignore[valid-type, misc]
                def __init__(self, *args: Any, **kwargs: Any) -> None:
                    kwargs.update(options)
                    super().__init__(*args, **kwargs)

            return cls_with_options

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            self.no_python_abi_suffix = kwargs.pop("no_python_abi_suffix", False)
            kwargs.pop("use_ninja", None)
            kwargs.pop("parallel", None)
            super().__init__(*args, **kwargs)

        def finalize_options(self) -> None:
            super().finalize_options()
            if self.parallel is None:
                self.parallel = int(os.environ.get("MAX_JOBS", 0)) or True

        def build_extensions(self) -> None:
            by_nvcc = self.by_nvcc = {}
            for extension in self.extensions:
                given = extension.extra_compile_args
                flags = _cxx_flags(given)
                name = extension.name.rpartition(".")[2]
                names = _name_flags(name, extension.sources, extension.include_dirs)
                extension.extra_compile_args = flags + names
                extension.extra_link_args += _openmp_link(flags, extension.extra_link_args)
                if any(source.endswith(".cu") for source in extension.sources):
                    nvcc = given.get("nvcc", []) if isinstance(given, dict) else given or []
                    by_nvcc[extension.name] = _cuda.nvcc_flags("build_ext", nvcc) + names
            # The compiler warns about a flag that is valid for C only.
            for part in ("compiler_so", "compiler_so_cxx"):
                command = getattr(self.compiler, part, None)
                if command and "-Wstrict-prototypes" in command:
                    command.remove("-Wstrict-prototypes")
            super().build_extensions()

        def build_extension(self, ext: Any) -> None:
            # Extensions are built at the same time: each has a compiler of its own.
            if ext.name not in self.by_nvcc:
                return super().build_extension(ext)
            apart = copy.copy(self)
            apart.compiler = copy.copy(self.compiler)
            _compile_by_nvcc(apart.compiler, self.by_nvcc[ext.name])
            return super(BuildExtension, apart).build_extension(ext)

        def get_ext_filename(self, ext_name: str) -> str:
            filename = super().get_ext_filename(ext_name)
            if self.no_python_abi_suffix:
                parts = filename.split(".")
                filename = ".".join([*parts[:-2], parts[-1]])
            return filename

    return BuildExtension


def __getattr__(name: str) -> Any:
    # BuildExtension is made on first use, since it imports setuptools.
    if name == "BuildExtension":
        globals()[name] = _build_extension_class()
        return globals()[name]
    raise AttributeError(f"module 'lamella.utils.cpp_extension' has no attribute {name!r}")


# ---- Without a setup.py --------------------------------------------------------------------------


def get_default_build_root() -> str:
    """The folder below which load() builds: LAMELLA_EXTENSIONS_DIR, or one in the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.environ.get("LAMELLA_EXTENSIONS_DIR") or os.path.join(cache, "lamella_extensions")


def _get_build_directory(name: str, verbose: bool = False, with_cuda: bool = False) -> str:
    device = "cuda" if with_cuda else "cpu"
    python = f"py{sys.version_info[0]}{sys.version_info[1]}_{device}"
    folder = os.path.join(get_default_build_root(), python, name)
    os.makedirs(folder, exist_ok=True)
    return folder


def load(
    name: str,
    sources: str | Sequence[str],
    extra_cflags: Sequence[str] | None = None,
    extra_cuda_cflags: Sequence[str] | None = None,
    extra_sycl_cflags: Sequence[str] | None = None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: Sequence[str] | None = None,
    build_directory: str | None = None,
    verbose: bool = False,
    with_cuda: bool | None = None,
    with_sycl: bool | None = None,
    is_python_module: bool = True,
    is_standalone: bool = False,
    keep_intermediates: bool = True,
) -> ModuleType | str | None:
    """Builds an extension from source files and loads it.

    Returns the module; with ``is_python_module=False`` the path of the library, whose operators are
    then in lamella.ops; with ``is_standalone`` the path of the program.
    """
    files = [sources] if isinstance(sources, str) else list(sources)
    files = [os.path.abspath(file) for file in files]
    if with_sycl or any(file.endswith(".sycl") for file in files):
        raise RuntimeError(f"load: {_OTHER}")
    if with_cuda is None:
        with_cuda = any(file.endswith(".cu") for file in files)
    folder = build_directory or _get_build_directory(name, verbose, with_cuda)
    os.makedirs(folder, exist_ok=True)
    own = include_paths("cuda" if with_cuda else "cpu")
    extra = [path.strip() for path in extra_include_paths or []]
    includes = [*extra, *own, sysconfig.get_paths()["include"]]
    names = _name_flags(name, files, extra)
    names += [f"-I{os.path.abspath(path)}" for path in includes]
    flags = [*names, "-fPIC", *_cxx_flags(["-O2", *_words(extra_cflags)])]
    link = [*_words(extra_ldflags), *_link_flags()]
    nvcc = []
    if with_cuda:
        link += _cuda.link_flags("load")
        nvcc = [_cuda.nvcc("load"), *names, *_cuda.nvcc_flags("load", _words(extra_cuda_cflags))]
    target = os.path.join(folder, name if is_standalone else f"{name}.so")
    link += _openmp_link(flags, link)
    if not is_standalone:
        link.insert(0, "-shared")
    _build(files, target, flags, nvcc, link, folder, verbose)
    if is_standalone:
        return target
    if not is_python_module:
        import lamella

        lamella.ops.load_library(target)
        return target
    path = _fresh(target)
    # pybind11 keeps modules by their full names, so one that was built anew has a package.
    full = name if path == target else f"{os.path.basename(path)[:-3]}.{name}"
    spec = importlib.util.spec_from_file_location(full, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _words(flags: Sequence[str] | None) -> list[str]:
    """The flags as a shell reads them: one text may have several, or whitespace around one."""
    return [word for flag in flags or () for word in shlex.split(flag)]


# For each library that was loaded: when it was built, and the file that was loaded.
_loaded: dict[str, tuple[int, str]] = {}


def _fresh(target: str) -> str:
    """The library, or a copy if this process has loaded an older one of its path."""
    built = os.stat(target).st_mtime_ns
    before, path = _loaded.get(target, (built, target))
    if built != before:
        path = f"{os.path.splitext(target)[0]}_{built}.so"
        if not os.path.exists(path):
            shutil.copy2(target, path)
    _loaded[target] = built, path
    return path


def _compiler() -> list[str]:
    command = shlex.split(get_cxx_compiler())
    ccache = shutil.which("ccache")
    return [ccache, *command] if ccache and "ccache" not in command[0] else command


def _build(
    files: list[str],
    target: str,
    flags: list[str],
    nvcc: list[str],
    link: list[str],
    folder: str,
    verbose: bool,
) -> None:
    """Compiles and links what changed, with ninja; without ninja everything if anything changed."""
    if not check_compiler_ok_for_platform(get_cxx_compiler()):
        raise RuntimeError(f"load: expected a C++ compiler, found no '{get_cxx_compiler()}'")
    objects = [
        os.path.join(folder, f"{os.path.splitext(os.path.basename(file))[0]}_{n}.o")
        for n, file in enumerate(files)
    ]
    compilers = {"compile": [*_compiler(), *flags], "compile_cuda": nvcc}
    rules = []
    for rule, command in compilers.items():
        if command:
            rules += [
                f"rule {rule}",
                f"  command = {_escaped(shlex.join(command))} -MD -MF $out.d -c $in -o $out",
                "  depfile = $out.d",
                "  deps = gcc",
            ]
    rule_of = {file: "compile_cuda" if file.endswith(".cu") else "compile" for file in files}
    rules += [
        "rule link",
        f"  command = {_escaped(shlex.join(shlex.split(get_cxx_compiler())))} $in -o $out "
        f"{_escaped(shlex.join(link))}",
    ]
    for source, made in zip(files, objects):
        rules.append(f"build {_escaped_path(made)}: {rule_of[source]} {_escaped_path(source)}")
    made_objects = " ".join(map(_escaped_path, objects))
    rules += [
        f"build {_escaped_path(target)}: link {made_objects}",
        f"default {_escaped_path(target)}",
    ]
    text = "\n".join(rules) + "\n"
    plan = os.path.join(folder, "build.ninja")
    if is_ninja_available():
        if not os.path.exists(plan) or open(plan, encoding="utf-8").read() != text:
            with open(plan, "w", encoding="utf-8") as file:
                file.write(text)
        jobs = os.environ.get("MAX_JOBS")
        commands = [["ninja", "-C", folder, *(["-j", jobs] if jobs else [])]]
    else:
        stamp = os.path.join(folder, "stamp")
        parts = [text, *(open(file, encoding="utf-8").read() for file in files)]
        digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()
        if os.path.exists(stamp) and open(stamp).read() == digest and os.path.exists(target):
            return
        commands = [
            [*compilers[rule_of[file]], "-c", file, "-o", made]
            for file, made in zip(files, objects)
        ]
        commands.append([*shlex.split(get_cxx_compiler()), *objects, "-o", target, *link])
    for command in commands:
        run = subprocess.run(command, capture_output=True, text=True)
        if verbose:
            print(run.stdout + run.stderr, end="")
        if run.returncode != 0:
            name = os.path.splitext(os.path.basename(target))[0]
            raise RuntimeError(f"Error building extension '{name}': {run.stdout}{run.stderr}")
    if not is_ninja_available():
        with open(stamp, "w") as file:
            file.write(digest)


def _escaped(text: str) -> str:
    return text.replace("$", "$$")


def _escaped_path(path: str) -> str:
    return re.sub(r"([$ :])", r"$\1", path)


def load_inline(
    name: str,
    cpp_sources: str | Sequence[str],
    cuda_sources: str | Sequence[str] | None = None,
    sycl_sources: str | Sequence[str] | None = None,
    functions: str | Sequence[str] | dict[str, str] | None = None,
    extra_cflags: Sequence[str] | None = None,
    extra_cuda_cflags: Sequence[str] | None = None,
    extra_sycl_cflags: Sequence[str] | None = None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: Sequence[str] | None = None,
    build_directory: str | None = None,
    verbose: bool = False,
    with_cuda: bool | None = None,
    with_sycl: bool | None = None,
    is_python_module: bool = True,
    with_pytorch_error_handling: bool = True,
    keep_intermediates: bool = True,
    use_pch: bool = False,
    no_implicit_headers: bool = False,
) -> ModuleType | str | None:
    """Like load(), with sources given as text. ``functions`` are bound to the module by name;
    a dictionary gives their docstrings."""
    if sycl_sources:
        raise RuntimeError(f"load_inline: {_OTHER}")
    cuda_texts = [cuda_sources] if isinstance(cuda_sources, str) else list(cuda_sources or [])
    with_cuda = bool(cuda_texts) if with_cuda is None else with_cuda
    texts = [cpp_sources] if isinstance(cpp_sources, str) else list(cpp_sources)
    if not no_implicit_headers:
        texts.insert(0, "#include <torch/extension.h>")
    if functions is not None:
        if isinstance(functions, str):
            functions = [functions]
        if not isinstance(functions, (list, tuple, dict)):
            raise ValueError(
                "load_inline: expected 'functions' to be a str, a list or a dict, got "
                f"{type(functions).__name__}"
            )
        named = functions if isinstance(functions, dict) else {f: f for f in functions}
        wrap = "torch::wrap_pybind_function" if with_pytorch_error_handling else ""
        lines = [f'm.def("{f}", {wrap}(&{f}), R"({doc})");' for f, doc in named.items()]
        texts.append("PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {\n" + "\n".join(lines) + "\n}")
    folder = build_directory or _get_build_directory(name, verbose, with_cuda)
    os.makedirs(folder, exist_ok=True)
    files = {"main.cpp": texts}
    if cuda_texts:
        headers = ["torch/types.h", "cuda.h", "cuda_runtime.h"]
        implicit = [] if no_implicit_headers else [f"#include <{name}>" for name in headers]
        files["cuda.cu"] = implicit + cuda_texts
    for file_name, parts in files.items():
        path = os.path.join(folder, file_name)
        text = "\n".join(parts) + "\n"
        if not os.path.exists(path) or open(path, encoding="utf-8").read() != text:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
    return load(
        name,
        [os.path.join(folder, file_name) for file_name in files],
        extra_cflags=extra_cflags,
        extra_cuda_cflags=extra_cuda_cflags,
        extra_ldflags=extra_ldflags,
        extra_include_paths=extra_include_paths,
        build_directory=folder,
        verbose=verbose,
        with_cuda=with_cuda,
        is_python_module=is_python_module,
    )
