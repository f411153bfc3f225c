"""Error against cost of a sweep's runs: fronts, hypervolumes, evaluations to reach the floor, and their tables."""

from cdsampler.benchmark.fronts._analysis import Analysis as Analysis
from cdsampler.benchmark.fronts._analysis import analyse_records as analyse_records
from cdsampler.benchmark.fronts._cells import ACCOUNTINGS as ACCOUNTINGS
from cdsampler.benchmark.fronts._cells import Cell as Cell
from cdsampler.benchmark.fronts._cells import cells_of as cells_of
from cdsampler.benchmark.fronts._cells import describe as describe
from cdsampler.benchmark.fronts._fronts import Front as Front
from cdsampler.benchmark.fronts._fronts import fronts as fronts
from cdsampler.benchmark.fronts._fronts import nondominated as nondominated
from cdsampler.benchmark.fronts._hypervolume import HypervolumeRatio as HypervolumeRatio
from cdsampler.benchmark.fronts._hypervolume import hypervolume as hypervolume
from cdsampler.benchmark.fronts._hypervolume import hypervolume_ratios as hypervolume_ratios
from cdsampler.benchmark.fronts._means import N_RESAMPLES as N_RESAMPLES
from cdsampler.benchmark.fronts._reach import REACHED as REACHED
from cdsampler.benchmark.fronts._reach import Reach as Reach
from cdsampler.benchmark.fronts._reach import reaches as reaches
from cdsampler.benchmark.fronts._records import Store as Store
from cdsampler.benchmark.fronts._records import read_records as read_records
from cdsampler.benchmark.fronts._records import read_store as read_store
from cdsampler.benchmark.fronts._tables import tables as tables
from cdsampler.benchmark.fronts._tables import write_table as write_table
