"""Production runs and their results."""

from cdsampler.sampling._inference_data import read_netcdf as read_netcdf
from cdsampler.sampling._result import Result as Result
from cdsampler.sampling._result import Timing as Timing
from cdsampler.sampling._run import Progress as Progress
from cdsampler.sampling._run import check_group as check_group
from cdsampler.sampling._run import run as run
from cdsampler.sampling._sample import sample as sample
from cdsampler.sampling._warnings import RunWarning as RunWarning
