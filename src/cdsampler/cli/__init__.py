"""The command line: `cdsampler sample`, `cdsampler list`, `cdsampler reference`."""

from cdsampler.cli._app import app as app
from cdsampler.cli._app import main as main
