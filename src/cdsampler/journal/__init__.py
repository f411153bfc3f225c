"""Checkpoints: what a run has done so far, on the disk."""

from cdsampler.journal._encoding import digest as digest
from cdsampler.journal._journal import AbstractEntry as AbstractEntry
from cdsampler.journal._journal import AbstractJournal as AbstractJournal
from cdsampler.journal._journal import Journal as Journal
from cdsampler.journal._journal import NoEntry as NoEntry
from cdsampler.journal._journal import NoJournal as NoJournal
from cdsampler.journal._opening import open_journal as open_journal
