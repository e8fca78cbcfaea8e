"""Deployment: a frozen policy collects exactly its budget of steps, and survives what environments do.

`plan` says who takes how many steps and what every episode draws from; `collect` carries a plan out on this
machine, `collect_fleet` on a Ray cluster, to the same bytes. A policy is all that is seen here of whatever chooses
the actions.
"""

from cascade.deploy.collect import collect, vectorise
from cascade.deploy.faults import Faults
from cascade.deploy.fleet import collect_fleet
from cascade.deploy.ledger import refuse_other_plan
from cascade.deploy.plan import Draw, Plan
from cascade.deploy.random_policy import RandomPolicy, VariedPolicy
from cascade.deploy.summary import Progress, Seconds, Summary

__all__ = [
    "Draw",
    "Faults",
    "Plan",
    "Progress",
    "RandomPolicy",
    "Seconds",
    "Summary",
    "VariedPolicy",
    "collect",
    "collect_fleet",
    "refuse_other_plan",
    "vectorise",
]
