"""The binders of a node: which are open, and which are passed on from workflow to workflow."""

import os

from logyard_engine.substrate.keeper.sheets import Binder, Sheet

_IDLE_MAX = 32
"""Binders that nobody prints into, and that are open all the same."""
_TRIES = 4


class Binders:
    """Every binder of the node that was used lately."""

    __slots__ = ("_binders", "_idle", "_quiet")

    def __init__(self) -> None:
        self._binders: dict[str, Binder] = {}
        self._idle: dict[str, Binder] = {}
        self._quiet: set[str] = set()
        """Of the idle ones, those that nobody will miss."""

    def take(self, stem: str, name: bytes, carried: bool) -> Sheet:
        """A sheet for a job that starts now. Raises OSError."""
        binder = self._binders.get(stem)
        if binder is None:
            binder = self._passed_on(stem, carried) or Binder(stem, carried)
            self._binders[stem] = binder
        self._idle.pop(stem, None)
        self._quiet.discard(stem)
        try:
            return binder.take(name)
        finally:
            self._rest(binder)

    def give_back(self, sheet: Sheet) -> None:
        """Its job is over: the next one of its workflow may have it."""
        sheet.binder.give_back(sheet)
        self._rest(sheet.binder)

    def forget(self, sheet: Sheet, name: bytes) -> None:
        """Nobody needs to know any more that this job was here."""
        if sheet.binder.carried and not sheet.held and sheet.holder == name:
            sheet.holder = b""
            sheet.empty()

    def retire(self, stem: str) -> None:
        """Its workflow is quiet here. What was carried away is removed."""
        binder = self._binders.get(stem)
        if binder is None or binder.held:
            return
        if stem in self._idle and binder.blank and not binder.carried:
            self._quiet.add(stem)
            return
        self._close(binder)
        if binder.carried:
            # Whoever had a sheet of it has none of a later binder of this name.
            binder.carried = False
            folder, _, name = stem.rpartition("/")
            for entry in os.listdir(folder):
                if entry.startswith(name + "."):
                    os.unlink(f"{folder}/{entry}")

    def close(self) -> None:
        """Forget all binders that are not in use."""
        for binder in list(self._binders.values()):
            if not binder.held:
                self._close(binder)

    def _passed_on(self, stem: str, carried: bool) -> Binder | None:
        """One that lies idle and in which nobody printed, from now on for this stem."""
        blank = [one for one in self._idle.values() if one.blank][:_TRIES]
        for binder in blank:
            before = binder.stem
            try:
                if binder.pass_on(stem, carried):
                    del self._idle[before], self._binders[before]
                    self._quiet.discard(before)
                    return binder
            except OSError:
                self._close(binder)
        return None

    def _close(self, binder: Binder) -> None:
        binder.close()
        self._idle.pop(binder.stem, None)
        self._quiet.discard(binder.stem)
        del self._binders[binder.stem]

    def _rest(self, binder: Binder) -> None:
        if binder.held or self._binders.get(binder.stem) is not binder:
            return
        self._idle[binder.stem] = binder
        if len(self._idle) > _IDLE_MAX:
            oldest = next(iter(self._idle.values()))
            if oldest.stem in self._quiet:
                self._close(oldest)
            else:
                self._idle.pop(oldest.stem).close()
