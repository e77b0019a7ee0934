"""Control groups, for the programs in this folder that limit what they measure."""

import contextlib
import os
import pathlib

ROOT = pathlib.Path("/sys/fs/cgroup")


@contextlib.contextmanager
def control_group(version_1, version_2):
    """Yields a function that moves the calling process into a new group with these limits.

    `version_1` has the settings {file: text} of each controller, `version_2` those of the one
    hierarchy. Raises OSError if no such group can be made.
    """
    name = f"cria-bench-{os.getpid()}"
    if (ROOT / "cgroup.controllers").exists():
        limits = {ROOT / name: version_2}
    else:
        limits = {ROOT / controller / name: settings for controller, settings in version_1.items()}
    made = []

    def join():
        for folder in made:
            (folder / "cgroup.procs").write_text(str(os.getpid()))

    try:
        for folder, settings in limits.items():
            folder.mkdir()
            made.append(folder)
            for file, text in settings.items():
                if not (folder / file).exists():
                    raise OSError(f"there is no {folder / file}")
                (folder / file).write_text(text)
        yield join
    finally:
        for folder in made:
            folder.rmdir()
