"""From a task and a rank to what the keeper starts: command, environment, folders, limits.

What all ranks of a task share is worked out once (`_Recipe`), so that a rank of a plain command
costs no look at the disk. Such ranks share a scratch folder per stage; a rank with a script,
files or mounts gets a folder of its own.
"""

import contextlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from logyard_domain.identifiers import allocation_parts
from logyard_domain.work import Start, Task
from logyard_engine.substrate import beneath, cgroup, commandline, sandbox
from logyard_engine.substrate.commandline import Refusal
from logyard_engine.substrate.environment import (
    base_environment,
    device_environment,
    expanded,
    task_environment,
)
from logyard_engine.substrate.keeper import frames
from logyard_engine.substrate.keeping import Message
from logyard_engine.substrate.seats import Seat
from logyard_engine.substrate.volumes import VolumeError, Volumes

HIDDEN = "/.logyard"
"""Where a job sees its own folder if a mount lies over it."""


class Footprint(msgspec.Struct, frozen=True, array_like=True):
    """What a running allocation holds on the node; the keeper keeps it for the next agent."""

    task: str
    workflow: str
    seat: Seat
    groups: tuple[str, ...]
    home: str
    memory: int
    stdout: str
    stderr: str

    def note(self) -> tuple[Any, ...]:
        """As the keeper's note; `msgspec.convert` turns it back."""
        seat = (self.seat.cpus, self.seat.devices)
        return (
            *(self.task, self.workflow, seat, self.groups),
            *(self.home, self.memory, self.stdout, self.stderr),
        )


class _Recipe:
    """What the ranks of one task have in common on this node."""

    __slots__ = ("binds", "cwd", "env", "logs", "private", "resolved", "scratch", "task", "varies")

    def __init__(self, task: Task, env: dict[str, str], logs: str, scratch: str) -> None:
        self.task = task
        self.env = env
        self.logs = logs
        self.scratch = scratch
        self.binds: dict[str, Path] = {}
        self.private = bool(task.script or task.files or task.mounts)
        self.cwd = ""
        self.varies = any("$" in argument for argument in task.argv)
        self.resolved: tuple[str, tuple[str, ...]] | None = None


class Runtime:
    """Prepares and clears up allocations in `folder`; output goes below `logs`.

    `limits` is None where there are no control groups: memory is then limited by RLIMIT_DATA.
    """

    def __init__(
        self, folder: Path, logs: Path, volumes: Volumes, limits: cgroup.Driver | None
    ) -> None:
        self._attempts = folder / "attempts"
        self._scratch = folder / "scratch"
        self._logs = logs
        self._volumes = volumes
        self._limits = limits
        self._base = base_environment()
        self._recipes: dict[str, _Recipe] = {}
        self._attempts.mkdir(parents=True, exist_ok=True)

    @property
    def limits(self) -> str:
        """What enforces limits here: ``cgroup-v2``, ``cgroup-v1`` or ``rlimit``."""
        return self._limits.kind if self._limits else "rlimit"

    @property
    def features(self) -> tuple[str, ...]:
        """What this node can do beyond starting processes."""
        return ("mounts",) if sandbox.bwrap() else ()

    def prepare(self, task: Task, start: Start, seat: Seat) -> tuple[Message, Footprint]:
        """What the keeper has to start, and what it will hold. Raises Refusal when that cannot
        be.
        """
        recipe = self._recipes.get(task.task)
        if recipe is None or recipe.task is not task:
            recipe = self._recipes[task.task] = self._recipe(task)
        _, _, rank, attempt = allocation_parts(start.allocation)
        env = recipe.env.copy()
        env["LOGYARD_ALLOCATION"] = start.allocation
        env["LOGYARD_ATTEMPT"] = str(attempt)
        if task.array:
            env["FB_TASK_ID"] = str(start.rank)
        if seat.devices:
            env.update(device_environment(seat))
        home = ""
        if recipe.private:
            home = str(self._attempts / start.allocation.replace("/", "~"))
        try:
            command, cwd = self._command(recipe, env, home)
            groups, join = self._limited(task, start.allocation, seat)
        except Refusal:
            self.clear_home(home)
            raise
        if join:
            script = f'{join}exec "$@"'
            command = ("/bin/sh", ("sh", "-c", script, "sh", command[0], *command[1][1:]))
        stem = f"{recipe.logs}/{rank}.{attempt}"
        footprint = Footprint(
            *(task.task, task.workflow, seat, groups, home, task.memory),
            *(stem + ".out", stem + ".err"),
        )
        message = frames.start(
            start.allocation,
            command[0],
            command[1],
            env,
            cwd,
            footprint.stdout,
            footprint.stderr,
            seat.cpus,
            task.limit_ms,
            task.grace_ms,
            footprint.note(),
            start.behind,
        )
        return message, footprint

    def measure(self, footprint: Footprint) -> cgroup.Usage | None:
        """What an ended allocation used, if its control group counted."""
        if self._limits and footprint.groups:
            return self._limits.usage(footprint.groups)
        return None

    def clear(self, footprint: Footprint) -> None:
        """Remove what an ended allocation leaves besides its output. May wait for processes to
        die.
        """
        cgroup.remove(footprint.groups)
        self.clear_home(footprint.home)

    def clear_home(self, home: str) -> None:
        """Remove the folder of one attempt."""
        if home:
            shutil.rmtree(home, ignore_errors=True)

    def retire(self, workflow: str) -> Path:
        """Nothing of this workflow runs here any more: put its scratch folders aside, for removal.

        Must not run at the same time as `prepare`; removing what is returned may.
        """
        for key in [
            key for key, recipe in self._recipes.items() if recipe.task.workflow == workflow
        ]:
            del self._recipes[key]
        aside = self._attempts / f"scratch~{workflow}"
        with contextlib.suppress(OSError):
            os.rename(self._scratch / workflow, aside)
        return aside

    def fresh(self) -> Path:
        """Nothing runs here: end and remove what a crash left, and put old folders aside for
        removal.
        """
        if self._limits:
            self._limits.sweep()
        self._recipes.clear()
        aside = self._attempts.with_name(f"old.{os.getpid()}.{len(os.listdir(self._attempts))}")
        with contextlib.suppress(OSError):
            os.rename(self._attempts, aside)
        self._attempts.mkdir(exist_ok=True)
        return aside

    def close(self) -> None:
        """Remove the node's control groups, if nothing runs in them."""
        if self._limits:
            self._limits.close()

    def _recipe(self, task: Task) -> _Recipe:
        for part in (task.workflow, *task.stage.split("/")):
            if part in ("", ".", ".."):
                raise Refusal(f"{task.task} cannot be the name of a folder")
        env = task_environment(self._base, task)
        logs = self._logs / task.workflow / task.stage
        scratch = self._scratch / task.workflow / task.stage
        try:
            logs.mkdir(parents=True, exist_ok=True)
            recipe = _Recipe(task, env, str(logs), str(scratch))
            if not recipe.private:
                scratch.mkdir(parents=True, exist_ok=True)
                env["TMPDIR"] = str(scratch)
            recipe.binds = self._mounts(task)
        except OSError as error:
            raise Refusal(f"the node cannot make a folder: {error}") from error
        return recipe

    def _mounts(self, task: Task) -> dict[str, Path]:
        binds: dict[str, Path] = {}
        for point, key in task.mounts.items():
            path = _container_path(point, "mount")
            try:
                folder = self._volumes.folder(task.workflow, key)
            except VolumeError as error:
                raise Refusal(str(error)) from error
            if not folder.is_dir():
                raise Refusal(f"volume {key} does not exist on this node, so {path} is not mounted")
            binds[path] = folder
        needs = [*task.mounts, *task.files]
        if needs and not sandbox.bwrap():
            raise Refusal(
                f"{needs[0]} cannot be shown to the job: bubblewrap does not work on this node"
            )
        return binds

    def _command(
        self, recipe: _Recipe, env: dict[str, str], home: str
    ) -> tuple[tuple[str, tuple[str, ...]], str]:
        """Executable with arguments, and the folder that the keeper starts it in."""
        if not recipe.private:
            cwd = recipe.task.cwd or recipe.scratch
            if cwd != recipe.scratch and not os.path.isdir(cwd):
                raise Refusal(_no_folder(cwd))
            if recipe.resolved is not None:
                return recipe.resolved, cwd
            found = _plain(recipe.task, env, cwd, Path)
            if not recipe.varies:
                recipe.resolved = found
            return found, cwd
        work = home + "/work"
        try:
            # What an attempt of that name left behind when the node crashed is not for this one.
            shutil.rmtree(home, ignore_errors=True)
            os.makedirs(work)
            return self._private(recipe, env, home, work)
        except OSError as error:
            raise Refusal(f"the job's folder cannot be prepared: {error}") from error

    def _private(
        self, recipe: _Recipe, env: dict[str, str], home: str, work: str
    ) -> tuple[tuple[str, tuple[str, ...]], str]:
        task, binds = recipe.task, dict(recipe.binds)
        own = home
        if sandbox.mounted(home, binds):
            own = HIDDEN
            binds[own] = Path(home)
        env["TMPDIR"] = f"{own}/work"
        cwd = task.cwd or f"{own}/work"
        self._inject(task, home, binds)

        def on_host(path: str) -> Path:
            return sandbox.host_path(path, binds)

        if task.cwd:
            _ensure_folder(task.cwd, binds)
        if task.script:
            # Handed to its interpreter: to execute a file just written can fail while others fork.
            Path(home, "script").write_text(task.script.replace("\r\n", "\n"))
            os.chmod(f"{home}/script", 0o755)
            arguments = (expanded(argument, env) for argument in task.argv)
            words = commandline.interpreter(task.script.replace("\r\n", "\n"), on_host)
            command = (words[0], (*words, f"{own}/script", *arguments))
        else:
            command = _plain(task, env, cwd, on_host)
        if not binds:
            return command, cwd
        try:
            words = sandbox.command(binds, cwd)
        except sandbox.SandboxError as error:
            raise Refusal(str(error)) from error
        return (words[0], (*words, command[0], *command[1][1:])), work

    def _inject(self, task: Task, home: str, binds: dict[str, Path]) -> None:
        """Put the task's files where the job will see them."""
        volumes = dict(binds)
        for number, (name, text) in enumerate(sorted(task.files.items())):
            path = _container_path(name, "file")
            point = sandbox.mounted(path, volumes)
            if point:
                try:
                    beneath.write(volumes[point], path.removeprefix(point), text.encode())
                except beneath.Escape as error:
                    raise Refusal(f"file {name}: {error}") from error
                continue
            source = Path(home, f"file.{number}")
            source.write_text(text)
            binds[path] = source

    def _limited(self, task: Task, allocation: str, seat: Seat) -> tuple[tuple[str, ...], str]:
        """Control groups of the job, and shell text that enters them."""
        if not task.memory:
            return (), ""
        if self._limits is None:
            return (), f"ulimit -d {max(1, task.memory // 1024)} && "
        name = allocation.replace("/", ".").replace("#", ".")
        try:
            groups = self._limits.create(name, task.memory, 0 if seat.cpus else task.cores)
        except OSError as error:
            raise Refusal(f"the memory limit cannot be set: {error}") from error
        return groups, cgroup.join_script(groups)


def _plain(
    task: Task, env: dict[str, str], cwd: str, on_host: Callable[[str], Path]
) -> tuple[str, tuple[str, ...]]:
    argv = tuple(expanded(argument, env) for argument in task.argv)
    if not argv or not argv[0]:
        raise Refusal("there is no command to run")
    return commandline.executable(argv[0], env, cwd, on_host), argv


def _container_path(path: str, what: str) -> str:
    if not path.startswith("/") or os.path.normpath(path) == "/" or ".." in path.split("/"):
        raise Refusal(f"{what} {path}: an absolute path below / is needed, for instance /data")
    return os.path.normpath(path)


def _ensure_folder(cwd: str, binds: dict[str, Path]) -> None:
    """The working folder is created inside a volume; elsewhere it must be there."""
    point = sandbox.mounted(cwd, binds)
    if point:
        try:
            with contextlib.suppress(FileExistsError):
                beneath.make_folder(binds[point], cwd.removeprefix(point))
        except (beneath.Escape, OSError) as error:
            raise Refusal(f"cwd {cwd} cannot be made: {error}") from error
    elif not os.path.isdir(cwd):
        raise Refusal(_no_folder(cwd))


def _no_folder(cwd: str) -> str:
    return (
        f"cwd {cwd} is no folder on this node; it is created only inside a mounted volume, "
        "so mount one there or leave cwd out"
    )
