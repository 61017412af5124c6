"""Which policy weighs which kind of task."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pytest_wfbench.matrix.task import TaskKind
from pytest_wfbench.promotion.implementation import ImplementationPolicy
from pytest_wfbench.promotion.review import ReviewPolicy
from pytest_wfbench.promotion.rules import Policy

POLICIES: Mapping[TaskKind, Policy] = MappingProxyType(
    {"implementation": ImplementationPolicy(), "review": ReviewPolicy()}
)
