"""What the build adds to the packages: the shared library to a wheel, with the platform tag that it needs, and the library's
sources to the sdist, so that a wheel can be built from it.

The wheel's library is the file that the environment variable PROOFINFER_LIBRARY names; without it, it is compiled here, which
needs CMake 3.25 (taken from PyPI where absent) and a C++17 compiler.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# Of the repository, what the library is built from.
NATIVE = ("CMakeLists.txt", "LICENSE", "docs/CMakeLists.txt", "docs/Doxyfile.in", "include", "proofinfer.pc.in", "src")

OPTIONS = ("-DPROOFINFER_BUILD_STATIC=OFF", "-DPROOFINFER_BUILD_PROGRAM=OFF", "-DPROOFINFER_BUILD_TESTS=OFF")


class CustomBuildHook(BuildHookInterface):
    def dependencies(self) -> list[str]:
        if self.target_name != "wheel" or os.environ.get("PROOFINFER_LIBRARY") or cmake_is_new_enough():
            return []
        return ["cmake>=3.25"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name == "sdist":
            self.add_sources(build_data)
        elif version != "editable":
            self.add_library(build_data)

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if getattr(self, "folder", None):
            shutil.rmtree(self.folder, ignore_errors=True)

    def sources(self) -> str:
        """Where the library's sources are: in an sdist, or in the repository around this folder."""
        for folder in (os.path.join(self.root, "native"), os.path.dirname(os.path.dirname(self.root))):
            if os.path.exists(os.path.join(folder, "include", "proofinfer.h")):
                return folder
        sys.exit("the library's sources are absent: build from the repository or an sdist, or set PROOFINFER_LIBRARY")

    def add_sources(self, build_data: dict[str, Any]) -> None:
        folder = self.sources()
        if folder != os.path.join(self.root, "native"):
            build_data["force_include"].update(
                {os.path.join(folder, name): f"native/{name}" for name in NATIVE if os.path.exists(os.path.join(folder, name))}
            )

    def add_library(self, build_data: dict[str, Any]) -> None:
        library = os.environ.get("PROOFINFER_LIBRARY") or self.compile()
        name = "libproofinfer.1.dylib" if sys.platform == "darwin" else "libproofinfer.so.1"
        build_data["force_include"][os.path.realpath(library)] = f"proofinfer/_lib/{name}"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform_tag(library)}"

    def build_folder(self) -> str:
        # An sdist is unpacked for one installation, in which front ends build twice: once for the metadata.
        if os.path.exists(os.path.join(self.root, "native")):
            return os.path.join(self.root, "native-build")
        self.folder = tempfile.mkdtemp(prefix="proofinfer-build-")
        return self.folder

    def compile(self) -> str:
        folder = self.build_folder()
        subprocess.run(
            ["cmake", "-S", self.sources(), "-B", folder, "-DCMAKE_BUILD_TYPE=Release", *OPTIONS],
            check=True,
        )
        command = ["cmake", "--build", folder, "--target", "proofinfer", "--parallel", str(os.cpu_count() or 1)]
        subprocess.run([*command, "--config", "Release"], check=True)
        suffix = ".dylib" if sys.platform == "darwin" else ".so"
        return os.path.join(folder, "src", "libproofinfer" + suffix)


def cmake_is_new_enough() -> bool:
    try:
        text = subprocess.run(["cmake", "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return False
    found = re.search(r"(\d+)\.(\d+)", text)
    return found is not None and (int(found[1]), int(found[2])) >= (3, 25)


def platform_tag(library: str) -> str:
    """Manylinux by the newest glibc symbol that the library asks for; what the system is called where there is no glibc."""
    import sysconfig

    with open(library, "rb") as file:
        versions = re.findall(rb"\x00GLIBC_2\.(\d+)(?=[\x00.])", file.read())
    if not versions:
        return re.sub(r"\W", "_", sysconfig.get_platform())
    # manylinux begins with glibc 2.17 on x86-64; nothing older is worth a name.
    return f"manylinux_2_{max(17, *map(int, versions))}_{platform.machine()}"
