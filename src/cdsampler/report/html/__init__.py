"""A sweep as one page of HTML that needs nothing else, with its figures and tables as files."""

from cdsampler.report.html._page import Report as Report
from cdsampler.report.html._page import write_report as write_report
