"""What a wheel contains beside the modules.

CRIA_WHEEL_CONTENTS is a folder with `lib`, the library with those that it needs, and `licences`; CRIA_WHEEL_PLATFORM is
the platform's tag. platforms/archive/make_wheel.sh of Cria's sources sets both. Without them, as where pip builds the
source distribution, the wheel has no library and is for every platform.
"""

import os
from typing import Any, Dict

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface):
    """Adds the library to a wheel."""

    def initialize(self, version: str, build_data: Dict[str, Any]) -> None:
        contents = os.environ.get("CRIA_WHEEL_CONTENTS")
        if contents is None or version != "standard":
            return
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{os.environ['CRIA_WHEEL_PLATFORM']}"
        for name in ("lib", "licences"):
            build_data["force_include"][os.path.join(contents, name)] = f"cria/{name}"
