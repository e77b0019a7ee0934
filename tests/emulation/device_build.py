"""What a build for another processor says of itself."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]


class DeviceBuild:
    """The programs of a build, and what reads and runs them on this machine."""

    def __init__(self, folder):
        settings = dict(re.findall(r"^(\w+):\w+=(.*)$", (folder / "CMakeCache.txt").read_text(), re.MULTILINE))
        self.program = folder / "cli/cria"
        self.sysroot = pathlib.Path(settings["CRIA_SYSROOT"])
        self.emulator = [settings["CRIA_EMULATOR"], "-L", settings["CRIA_SYSROOT"]]
        self.nm, self.objdump = settings["CMAKE_NM"], settings["CMAKE_OBJDUMP"]
        self.kernel_archive = pathlib.Path(settings["CRIA_xnnpack_LIBRARY"]).with_name("libmicrokernels-prod.a")

    def file(self, path):
        """Which file an emulated program opens as `path`: the emulator looks in the sysroot first."""
        inside = self.sysroot / path.lstrip("/")
        return inside if inside.exists() else pathlib.Path(path)
