"""Errors that cdsampler raises; each message names the thing, its value and the remedy."""


class CdsamplerError(Exception):
    """Base of every error that cdsampler raises on purpose."""


class InvalidInputError(CdsamplerError, ValueError):
    """An argument is wrong; found before any expensive work."""


class DensityError(CdsamplerError, ValueError):
    """The log density misbehaves: wrong shape or dtype, +inf, or non-finite at every start."""


class MissingExtraError(CdsamplerError, ImportError):
    """An optional dependency is absent; the message names the extra that installs it."""


class ProcessError(CdsamplerError, RuntimeError):
    """Another process of a run over several has failed, fallen silent, or runs something else."""


class SamplingWarning(UserWarning):
    """Something that makes samples less trustworthy."""


class ReferenceWarning(UserWarning):
    """A set of reference samples was found damaged, or failed a check of its own."""
