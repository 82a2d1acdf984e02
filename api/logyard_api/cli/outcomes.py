"""How a command ends: its exit codes, and the troubles that end it with one clear message."""

OK = 0
FAILED = 1
USAGE = 2
NO_SERVER = 3
INTERRUPTED = 130


class Trouble(Exception):
    """The command cannot go on. The message is for people; the exit code is `code`."""

    def __init__(self, message: str, code: int = FAILED) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


class NoServer(Trouble):
    """Nothing answers, or what answers is no Logyard server."""

    def __init__(self, message: str) -> None:
        super().__init__(message, NO_SERVER)


class Answered(Trouble):
    """The server answered with an error: its status, gRPC code, message and details."""

    def __init__(
        self, status: int, grpc_code: int, message: str, details: list[dict[str, object]]
    ) -> None:
        super().__init__(message)
        self.status = status
        self.grpc_code = grpc_code
        self.details = details
