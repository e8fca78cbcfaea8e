"""Deployment: a frozen policy collects exactly its budget of steps, and survives what environments do.

`plan` says who takes how many steps and what every episode draws from; `collect` carries a plan out on this
machine. A policy is all that is seen here of whatever chooses the actions.
"""

from cascade.deploy.collect import collect, vectorise
from cascade.deploy.faults import Faults
from cascade.deploy.plan import Draw, Plan
from cascade.deploy.random_policy import RandomPolicy
from cascade.deploy.summary import Progress, Seconds, Summary

__all__ = ["Draw", "Faults", "Plan", "Progress", "RandomPolicy", "Seconds", "Summary", "collect", "vectorise"]
