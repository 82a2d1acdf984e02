"""The agent's hand: its connection with the keeper, and what it is about to tell it."""

import select

from logyard_engine.substrate.keeping import Heard, KeeperClient, Message

_FORGET_MAX = 256


class Hand:
    """Gathers messages until `tell`. `epoll` wakes up when the keeper has something to say."""

    def __init__(self, epoll: select.epoll) -> None:
        self._epoll = epoll
        self._keeper: KeeperClient | None = None
        self._messages: list[Message] = []
        self._forgotten: list[str] = []

    @property
    def holds(self) -> bool:
        """Whether there is a keeper."""
        return self._keeper is not None

    def take(self, keeper: KeeperClient, changed: bool) -> None:
        """Talk to this keeper from now on. What was to be told is void; what was to be forgotten
        too, if the keeper has changed.
        """
        self._keeper = keeper
        self._epoll.register(keeper.fileno(), select.EPOLLIN)
        self._messages.clear()
        if changed:
            self._forgotten.clear()

    def let_go(self) -> None:
        """Leave the keeper alone."""
        if self._keeper is not None:
            self._epoll.unregister(self._keeper.fileno())
            self._keeper.close()
            self._keeper = None

    def hear(self) -> Heard | None:
        """What the keeper says; None when it is gone."""
        return self._keeper.receive() if self._keeper is not None else None

    def add(self, *messages: Message) -> None:
        """Tell this soon."""
        self._messages += messages

    def forget(self, allocation: str) -> None:
        """Let the keeper forget an allocation, some time."""
        self._forgotten.append(allocation)

    def tell(self) -> None:
        """Send what was gathered. What is to be forgotten rides along; alone it would cost a
        wake-up.
        """
        if self._messages or len(self._forgotten) >= _FORGET_MAX:
            self.flush()

    def flush(self) -> None:
        """Send everything."""
        if self._forgotten:
            self._messages.append(("forget", self._forgotten))
            self._forgotten = []
        messages, self._messages = self._messages, []
        if self._keeper is not None:
            try:
                self._keeper.send(messages)
            except OSError:
                # Its death is seen by the next reading, and handled there.
                return
