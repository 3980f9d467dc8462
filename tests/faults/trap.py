"""Kills a process of a cluster once, at a chosen moment of a step, as the proxy sees it.

It does not know what must follow.
"""

from threading import Event, Lock

from tests.faults.processes import Cluster
from tests.faults.proxy import Exchange, Lost

STEPS = ["joining", "correlations", "initial/1", "initial/2", "update/1", "update/2", "parameters"]


class Trap:
    """`moment`: a step's answer is lost before it arrives; it arrives, and that is lost or heard; a task is taken."""

    def __init__(self, cluster: Cluster, victim: str, step: str, moment: str, of: str = "") -> None:
        self.cluster, self.victim, self.step, self.moment = cluster, victim, step, moment
        self.of = [of] if of else cluster.names  # whose answer: one party's, or anybody's
        self.sprung, self._once = Event(), Lock()
        self.tasks = 0
        cluster.proxy.before, cluster.proxy.after = self.before, self.after

    def before(self, exchange: Exchange) -> None:
        if self.moment == "lost before" and self.is_it(exchange):
            self.spring(lost=True)

    def after(self, exchange: Exchange) -> None:
        if self.is_it(exchange) and self.moment in ("lost after", "after, but heard"):
            self.spring(lost=self.moment == "lost after")
        if self.moment == "task taken" and exchange.is_task:
            self.tasks += 1
            if self.tasks > STEPS.index(self.step):
                self.spring(lost=False)

    def is_it(self, exchange: Exchange) -> bool:
        return exchange.step == self.step and exchange.party in self.of

    def spring(self, lost: bool) -> None:
        with self._once:
            if self.sprung.is_set():
                return
            self.cluster.kill(self.victim)
            self.sprung.set()
        if lost:
            raise Lost
