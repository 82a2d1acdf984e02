"""The writer, the configuration, and the priorities of organizations, groups and users."""

from logyard_domain.events import (
    ConfigSet,
    GroupDeleted,
    GroupUpdated,
    OrganizationUpdated,
    ServerStarted,
    ServerStopped,
    UserUpdated,
)
from logyard_engine.audit.findings import Ledger
from logyard_engine.audit.state import State


class Settings:
    """Events of the cluster as a whole."""

    def __init__(self, state: State, ledger: Ledger) -> None:
        self._state = state
        self._ledger = ledger

    def server_started(self, event: ServerStarted) -> None:
        """Each writer has the next term."""
        state = self._state
        if event.term != state.term + 1:
            self._ledger.breach("I12", "server", f"term {event.term} follows on {state.term}")
        state.term = event.term

    def server_stopped(self, event: ServerStopped) -> None:
        """The present writer ends."""
        if event.term != self._state.term:
            self._ledger.breach(
                "I12",
                "server",
                f"term {event.term} ends, and {self._state.term} is the present one",
            )

    def config(self, event: ConfigSet) -> None:
        """The next revision is in force."""
        state = self._state
        if event.revision != state.revision + 1:
            self._ledger.breach(
                "I12", "server", f"revision {event.revision} follows on {state.revision}"
            )
        state.revision = event.revision
        state.configure(event.values, event.formulas)
        self._changed()

    def organization(self, event: OrganizationUpdated) -> None:
        """It has this priority."""
        self._state.ranking.organizations[event.organization] = event.priority
        self._changed()

    def group(self, event: GroupUpdated) -> None:
        """It has this priority, and may preempt these groups."""
        key = (event.organization, event.group)
        self._state.ranking.groups[key] = (event.priority, frozenset(event.preempts))
        self._changed()

    def group_deleted(self, event: GroupDeleted) -> None:
        """It is gone from all lists."""
        self._ledger.checked["I3"] += 1
        groups = self._state.ranking.groups
        if groups.pop((event.organization, event.group), None) is None:
            self._ledger.breach("I3", event.group, "it was deleted, and there is no such group")
        for (organization, name), (priority, preempts) in list(groups.items()):
            if organization == event.organization:
                groups[organization, name] = (priority, preempts - {event.group})
        self._changed()

    def user(self, event: UserUpdated) -> None:
        """They have this priority."""
        self._state.ranking.users[event.user] = event.priority
        self._changed()

    def _changed(self) -> None:
        self._state.ranking.changed(self._state.position)
        self._state.dirty = True
