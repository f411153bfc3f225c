"""Pages of HTML that need nothing else: of a sweep, with its figures and tables as files, and of a comparison."""

from cdsampler.report.html._comparison import write_comparison as write_comparison
from cdsampler.report.html._page import Report as Report
from cdsampler.report.html._page import write_report as write_report
