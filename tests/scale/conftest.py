import os
import pickle
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).with_name("script.py")


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Apart:
    """Processes that run a scenario of the script."""

    def __init__(self, folder, scenario, *, n_processes=1, n_devices=1):
        flags = f"--xla_force_host_platform_device_count={n_devices}"
        environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
        port = free_port()
        self.files = [folder / f"{scenario}-{n_devices}-{process}.pkl" for process in range(n_processes)]
        self.running = [
            subprocess.Popen(
                [sys.executable, str(SCRIPT), str(file), scenario, str(process), str(n_processes), str(port)],
                env=environment,
                stderr=subprocess.PIPE,
                text=True,
            )
            for process, file in enumerate(self.files)
        ]

    def end(self, seconds=900):
        """Wait for the processes; return what each left, None if it left nothing."""
        try:
            self.errors = [one.communicate(timeout=seconds)[1] for one in self.running]
        finally:
            for one in self.running:
                one.kill()
        return [pickle.loads(file.read_bytes()) if file.exists() else None for file in self.files]

    def whole(self):
        """Return what each left; all have to end well."""
        made = self.end()
        for one, error in zip(self.running, self.errors, strict=True):
            assert one.returncode == 0, error
        return made


@pytest.fixture(scope="session")
def apart(tmp_path_factory):
    """Return a function that starts processes."""
    folder = tmp_path_factory.mktemp("apart")
    return lambda scenario, **settings: Apart(folder, scenario, **settings)


@pytest.fixture(scope="session")
def one_device(apart):
    """All cases on one device."""
    return apart("whole").whole()[0]


@pytest.fixture(scope="session")
def differing():
    """Return a function that names what isn't the same bit for bit in two outcomes."""

    def names(one, other):
        assert one.keys() == other.keys()
        return [name for name in one if not np.array_equal(one[name], other[name])]

    return names
