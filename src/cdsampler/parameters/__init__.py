"""Parameters with names, shapes and bounds, and models in terms of them."""

from cdsampler.parameters._model import Model as Model
from cdsampler.parameters._space import ParameterSpace as ParameterSpace
from cdsampler.parameters._supports import Parameter as Parameter
from cdsampler.parameters._supports import interval as interval
from cdsampler.parameters._supports import ordered as ordered
from cdsampler.parameters._supports import positive as positive
from cdsampler.parameters._supports import positive_definite as positive_definite
from cdsampler.parameters._supports import real as real
from cdsampler.parameters._supports import simplex as simplex
