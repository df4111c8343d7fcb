"""What a user gets: installs the built tree and builds the README's program against it in every way that the README names.

    test_install.py --build-dir DIR --source-dir DIR --work-dir DIR --maker PROGRAM
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

EXPECTED = ["include/proofinfer.h", "{lib}/libproofinfer.so", "{lib}/libproofinfer.so.1", "{lib}/libproofinfer.so.1.0.0", "{lib}/libproofinfer.a",
            "{lib}/pkgconfig/proofinfer.pc", "{lib}/cmake/proofinfer/proofinferConfig.cmake", "share/doc/proofinfer/LICENSE"]
EXPECTED_PROGRAM = ["bin/proofinfer", "share/man/man1/proofinfer.1"]
STRICT = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror"]


def run(*command, env=None, cwd=None):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, cwd=cwd, env={**os.environ, **(env or {})})
    if done.returncode != 0:
        sys.exit(f"{' '.join(str(c) for c in command)}\nexit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def must_fail(why, *command, env=None):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, env={**os.environ, **(env or {})})
    if done.returncode == 0:
        sys.exit(f"{why}: {' '.join(str(c) for c in command)} succeeded")


def readme_program(source_dir):
    """The one C program of the README, so that what it shows is what is compiled."""
    blocks = re.findall(r"^```c\n(.*?)^```$", (source_dir / "README.md").read_text(), re.M | re.S)
    programs = [block for block in blocks if "int main(" in block]
    if len(programs) != 1:
        sys.exit(f"README.md has {len(programs)} C programs; expected 1")
    lines = programs[0].count("\n")
    if lines > 40:
        sys.exit(f"the README's program has {lines} lines; it promises about 30")
    return programs[0]


class Installation:
    """The files under a prefix, and how to build against them."""

    def __init__(self, prefix):
        self.prefix = prefix
        found = list(prefix.rglob("proofinfer.pc"))
        if len(found) != 1:
            sys.exit(f"{prefix}: {len(found)} files named proofinfer.pc")
        self.pkg_config_dir = found[0].parent
        self.libdir = self.pkg_config_dir.parent

    def check_files(self, has_program):
        lib = self.libdir.relative_to(self.prefix)
        for name in EXPECTED + (EXPECTED_PROGRAM if has_program else []):
            if not (self.prefix / name.format(lib=lib)).exists() and not (self.prefix / (name + ".gz")).exists():
                sys.exit(f"{self.prefix}: {name.format(lib=lib)} is missing")

    def flags(self, *options):
        return run("pkg-config", *options, "proofinfer", env={"PKG_CONFIG_PATH": str(self.pkg_config_dir)}).split()

    def environment(self):
        return {"LD_LIBRARY_PATH": str(self.libdir)}


def show(what):
    print("ok:", what, flush=True)


def with_pkg_config(installation, demo, work, files, compilers):
    outputs = set()
    for compiler in compilers:
        shared = work / f"shared-{compiler}"
        run(compiler, *STRICT, demo, *installation.flags("--cflags", "--libs"), "-o", shared)
        if "libproofinfer.so.1" not in run("readelf", "-d", shared):
            sys.exit("the shared form does not use the shared library")
        outputs.add(run(shared, *files, env=installation.environment()))
        show(f"{compiler}, pkg-config, shared")

        static = work / f"static-{compiler}"
        run(compiler, *STRICT, demo, *installation.flags("--static", "--cflags", "--libs"), "-static", "-o", static)
        outputs.add(run(static, *files))
        show(f"{compiler}, pkg-config --static, wholly static")

        archive = work / f"archive-{compiler}"
        run(compiler, *STRICT, demo, f"-I{installation.prefix}/include", installation.libdir / "libproofinfer.a", "-lm", "-o", archive)
        if "libproofinfer" in run("readelf", "-d", archive) or "libstdc++" in run("readelf", "-d", archive):
            sys.exit("the archive form needs a library that it should not")
        outputs.add(run(archive, *files))
        show(f"{compiler}, libproofinfer.a -lm")
    if len(outputs) != 1 or not outputs.pop().strip():
        sys.exit("the forms print different texts, or none")


def with_only_the_archive(installation, demo, work, files):
    """Where the archive alone is installed, the plain --static flags link it."""
    copy = work / "archive-only"
    shutil.copytree(installation.prefix, copy, symlinks=True)
    only = Installation(copy)
    for file in only.libdir.glob("libproofinfer.so*"):
        file.unlink()
    program = work / "archive-only-demo"
    run("gcc", *STRICT, demo, *only.flags("--static", "--cflags", "--libs"), "-o", program)
    run(program, *files)
    show("gcc, pkg-config --static, archive alone installed")


def with_cmake(installation, demo, work, files, outside):
    for component in ("shared", "static"):
        build = work / f"cmake-{component}"
        run("cmake", "-S", outside, "-B", build, f"-DCMAKE_PREFIX_PATH={installation.prefix}", f"-DCOMPONENT={component}", f"-DDEMO={demo}")
        run("cmake", "--build", build)
        run(build / "demo", *files, env=installation.environment())
        show(f"find_package, component {component}")
    must_fail("a component that does not exist", "cmake", "-S", outside, "-B", work / "cmake-no", f"-DCMAKE_PREFIX_PATH={installation.prefix}",
              "-DCOMPONENT=quantum", f"-DDEMO={demo}")


def with_cxx(installation, demo, work, files):
    program = work / "cxx-demo"
    run("g++", "-x", "c++", "-std=c++17", demo, "-x", "none", *installation.flags("--cflags", "--libs"), "-o", program)
    run(program, *files, env=installation.environment())
    show("g++, pkg-config")


def moved(installation, work):
    elsewhere = work / "moved"
    shutil.copytree(installation.prefix, elsewhere, symlinks=True)
    flags = " ".join(Installation(elsewhere).flags("--cflags", "--libs"))
    if str(installation.prefix) in flags or str(elsewhere) not in flags:
        sys.exit(f"a moved installation gives {flags}")
    show("a moved prefix")


def absolute_directories(source_dir, work):
    build = work / "absolute"
    run("cmake", "-S", source_dir, "-B", build, "-DCMAKE_INSTALL_LIBDIR=/opt/arch/lib", "-DCMAKE_INSTALL_INCLUDEDIR=/opt/headers",
        "-DCMAKE_INSTALL_PREFIX=/opt/proofinfer", "-DPROOFINFER_BUILD_TESTS=OFF")
    flags = run("pkg-config", "--cflags", "--libs", build / "proofinfer.pc").split()
    if flags != ["-I/opt/headers", "-L/opt/arch/lib", "-lproofinfer"]:
        sys.exit(f"absolute directories give {flags}")
    show("absolute library and header directories")


def destdir(build_dir, work, has_program):
    stage = work / "stage"
    run("cmake", "--install", build_dir, "--prefix", "/usr", env={"DESTDIR": str(stage)})
    Installation(stage / "usr").check_files(has_program)
    show("DESTDIR")


def debian_package(build_dir, demo, work, files, has_program):
    if not shutil.which("dpkg-deb"):
        print("SKIPPED[dpkg]: dpkg-deb is not installed")
        return
    folder = work / "deb"
    run("cpack", "-G", "DEB", "--config", build_dir / "CPackConfig.cmake", "-B", folder)
    packages = list(folder.glob("*.deb"))
    if len(packages) != 1 or not re.fullmatch(r"proofinfer_1\.0\.0_\w+\.deb", packages[0].name):
        sys.exit(f"packages: {packages}")
    depends = run("dpkg-deb", "-f", packages[0], "Depends")
    if "libc6" not in depends or "libstdc++" in (depends if not has_program else ""):
        sys.exit(f"the package depends on {depends}")
    root = folder / "root"
    run("dpkg-deb", "-x", packages[0], root)
    installation = Installation(root / "usr")
    installation.check_files(has_program)
    program = work / "deb-demo"
    run("gcc", *STRICT, demo, *installation.flags("--cflags", "--libs"), "-o", program)
    run(program, *files, env=installation.environment())
    show(f"{packages[0].name}, depends on {depends.strip()}")


def installed_program(installation, work, files):
    program = installation.prefix / "bin" / "proofinfer"
    if "1.0.0" not in run(program, "--version"):
        sys.exit("the installed program does not say its version")
    text = run(program, files[0], "-z", files[1], "-n", "20", cwd=work)
    if not text.strip():
        sys.exit("the installed program prints nothing")
    show("the installed program")


def main():
    parser = argparse.ArgumentParser()
    for name in ("--build-dir", "--source-dir", "--work-dir", "--maker"):
        parser.add_argument(name, type=pathlib.Path, required=True)
    options = parser.parse_args()
    work = options.work_dir
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    demo = work / "demo.c"
    demo.write_text(readme_program(options.source_dir))
    files = [work / "model.bin", work / "tokenizer.bin"]
    run(options.maker, *files)

    run("cmake", "--install", options.build_dir, "--prefix", work / "prefix")
    installation = Installation(work / "prefix")
    has_program = (work / "prefix" / "bin" / "proofinfer").exists()
    installation.check_files(has_program)
    show("cmake --install")
    with_pkg_config(installation, demo, work, files, [c for c in ("gcc", "clang") if shutil.which(c)])
    with_only_the_archive(installation, demo, work, files)
    with_cxx(installation, demo, work, files)
    with_cmake(installation, demo, work, files, options.source_dir / "tests" / "install" / "outside")
    moved(installation, work)
    absolute_directories(options.source_dir, work)
    destdir(options.build_dir, work, has_program)
    debian_package(options.build_dir, demo, work, files, has_program)
    if has_program:
        installed_program(installation, work, files)
    shutil.rmtree(work)


main()
