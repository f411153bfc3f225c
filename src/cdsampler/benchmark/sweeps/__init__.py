"""Sweeps: tasks × samplers × grids × budgets × repeats, resumable, in one or many processes."""

from cdsampler.benchmark.sweeps._executors import Executor as Executor
from cdsampler.benchmark.sweeps._executors import InProcess as InProcess
from cdsampler.benchmark.sweeps._executors import Processes as Processes
from cdsampler.benchmark.sweeps._model import Entry as Entry
from cdsampler.benchmark.sweeps._model import Sweep as Sweep
from cdsampler.benchmark.sweeps._model import Task as Task
from cdsampler.benchmark.sweeps._plan import Job as Job
from cdsampler.benchmark.sweeps._plan import RunSpec as RunSpec
from cdsampler.benchmark.sweeps._plan import expand as expand
from cdsampler.benchmark.sweeps._ray import Ray as Ray
from cdsampler.benchmark.sweeps._read import list_presets as list_presets
from cdsampler.benchmark.sweeps._read import parse_config as parse_config
from cdsampler.benchmark.sweeps._read import read_config as read_config
from cdsampler.benchmark.sweeps._records import Record as Record
from cdsampler.benchmark.sweeps._run_one import Outcome as Outcome
from cdsampler.benchmark.sweeps._run_one import run_one as run_one
from cdsampler.benchmark.sweeps._runner import SweepProgress as SweepProgress
from cdsampler.benchmark.sweeps._runner import run_sweep as run_sweep
from cdsampler.benchmark.sweeps._targets import register_target as register_target
