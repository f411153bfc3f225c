"""Figures of runs, and tables for the console."""

from cdsampler.report._comparison import comparison_figure as comparison_figure
from cdsampler.report._comparison import entries_table as entries_table
from cdsampler.report._comparison import pairs_table as pairs_table
from cdsampler.report._figures import Shown as Shown
from cdsampler.report._figures import run_figure as run_figure
from cdsampler.report._figures import save_figure as save_figure
from cdsampler.report._pairs import pair_figure as pair_figure
from cdsampler.report._predictive import predictive_figure as predictive_figure
from cdsampler.report._ramachandran import ramachandran_figure as ramachandran_figure
from cdsampler.report._structures import structure_figure as structure_figure
from cdsampler.report._tables import annealing_table as annealing_table
from cdsampler.report._tables import cost_table as cost_table
from cdsampler.report._tables import metrics_table as metrics_table
from cdsampler.report._tables import plan_table as plan_table
from cdsampler.report._tables import tempering_table as tempering_table
from cdsampler.report._tables import warnings_panel as warnings_panel
