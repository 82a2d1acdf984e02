"""From a task and a rank to what the keeper starts: command, environment, folders, limits.

What all ranks of a task share is worked out once (`recipe.Recipe`), so that a rank of a plain
command costs no look at the disk. Such ranks share a scratch folder per workflow; a rank with a
script, files or mounts gets a folder of its own.
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
from logyard_engine.substrate.printed import binder_stem
from logyard_engine.substrate.recipe import Command, Recipe, Recipes, encoded
from logyard_engine.substrate.scratch import Scratch
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
    scratch: str

    def note(self) -> tuple[Any, ...]:
        """As the keeper's note; `msgspec.convert` turns it back."""
        seat = (self.seat.cpus, self.seat.devices)
        held = (self.task, self.workflow, seat, self.groups)
        return (*held, self.home, self.memory, self.scratch)


class Runtime:
    """Prepares and clears up allocations of `node` in `folder`; output goes below `logs`, and is
    `carried` to a server from there or not.

    `limits` is None where there are no control groups: memory is then limited by RLIMIT_DATA.
    """

    def __init__(
        self,
        node: str,
        folder: Path,
        logs: Path,
        volumes: Volumes,
        limits: cgroup.Driver | None,
        carried: bool = False,
    ) -> None:
        self._node = node
        self._carried = carried
        self._attempts = folder / "attempts"
        self._logs = logs
        self._volumes = volumes
        self._limits = limits
        self._base = base_environment()
        self._recipes = Recipes(carried)
        self._found: dict[tuple[str, str], str] = {}
        """By name and PATH: where a command was found lately."""
        self._attempts.mkdir(parents=True, exist_ok=True)
        self._scratch = Scratch(folder / "scratch", self._attempts)

    @property
    def limits(self) -> str:
        """What enforces limits here: ``cgroup-v2``, ``cgroup-v1`` or ``rlimit``."""
        return self._limits.kind if self._limits else "rlimit"

    @property
    def features(self) -> tuple[str, ...]:
        """What this node can do beyond starting processes."""
        return ("mounts",) if sandbox.bwrap() else ()

    def look_again(self) -> None:
        """Forget where commands were found: others may have come. To be called now and then."""
        self._found.clear()

    def lacks_folder(self, task: Task) -> bool:
        """Whether a scratch folder has to be made for it."""
        return self._scratch.lacks(task.workflow)

    def prepare(self, task: Task, start: Start, seat: Seat) -> tuple[list[Message], Footprint]:
        """What the keeper has to hear to start it, and what it will hold. Raises Refusal when that
        cannot be.
        """
        recipe = self._recipes.get(task)
        if recipe is None:
            recipe = self._recipe(task)
            self._recipes.keep(recipe)
        _, _, _, attempt = allocation_parts(start.allocation)
        own = {"LOGYARD_ALLOCATION": start.allocation, "LOGYARD_ATTEMPT": str(attempt)}
        if task.array:
            own["FB_TASK_ID"] = str(start.rank)
        if seat.devices:
            own.update(device_environment(seat))
        home = ""
        if recipe.private:
            home = str(self._attempts / start.allocation.replace("/", "~"))
        try:
            command = self._command(recipe, own, home)
            groups, join = self._limited(task, start.allocation, seat)
        except Refusal:
            self.clear_home(home)
            raise
        if join:
            words = ("sh", "-c", f'{join}exec "$@"', "sh", command[0], *command[1][1:])
            command = ("/bin/sh", words, command[2])
        footprint = Footprint(
            *(task.task, task.workflow, seat, groups, home, task.memory),
            recipe.scratch,
        )
        messages = self._recipes.introduce(recipe)
        message = frames.start(
            start.allocation,
            task.task,
            encoded(own),
            seat.cpus,
            footprint.note(),
            start.behind,
            None if command is recipe.command else command,
        )
        messages.append(message)
        return messages, footprint

    def adopt(self, footprint: Footprint) -> None:
        """An earlier agent started this."""
        if footprint.scratch:
            self._scratch.adopt(footprint.workflow, footprint.scratch)

    def attached(self) -> None:
        """The keeper is another one, or was left in between: it has to be told of tasks again."""
        self._recipes.unknown()

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

    def spare(self, workflow: str) -> list[Message] | None:
        """Free the scratch folder of this workflow, of which nothing runs, for the next one: what
        the keeper has to hear, or None where there is no empty folder.
        """
        return self._recipes.retire(workflow) if self._scratch.spare(workflow) else None

    def retire(self, workflow: str) -> tuple[list[Message], Path | None]:
        """Nothing of this workflow runs here any more: what the keeper has to hear, and its scratch
        folder, put aside for removal, if it is not empty.

        Must not run at the same time as `prepare`; removing what is returned may.
        """
        messages = self._recipes.retire(workflow)
        messages.append(("retire", binder_stem(self._logs, workflow, self._node)))
        return messages, self._scratch.retire(workflow)

    def fresh(self) -> Path:
        """Nothing runs here: end and remove what a crash left, and put old folders aside for
        removal.
        """
        if self._limits:
            self._limits.sweep()
        self._recipes.clear()
        aside = self._attempts.with_name(f"old.{os.getpid()}.{len(os.listdir(self._attempts))}")
        with contextlib.suppress(OSError):
            self._scratch.clear()
        with contextlib.suppress(OSError):
            os.rename(self._attempts, aside)
        self._attempts.mkdir(exist_ok=True)
        if self._carried:
            with contextlib.suppress(OSError):
                os.rename(self._logs, aside / "output")
        return aside

    def close(self) -> None:
        """Remove the node's control groups, if nothing runs in them."""
        if self._limits:
            self._limits.close()

    def _recipe(self, task: Task) -> Recipe:
        if task.workflow in ("", ".", "..") or "/" in task.workflow:
            raise Refusal(f"{task.workflow} cannot be the name of a folder")
        if "\n" in task.task:
            raise Refusal(f"{task.task!r} cannot be written in a line")
        env = task_environment(self._base, task)
        stem = binder_stem(self._logs, task.workflow, self._node)
        recipe = Recipe(task, env, stem)
        try:
            if not recipe.private:
                recipe.scratch = env["TMPDIR"] = self._scratch.folder(task.workflow)
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

    def _command(self, recipe: Recipe, own: dict[str, str], home: str) -> Command:
        """What is started. `own` is the environment besides the recipe's."""
        if not recipe.private:
            cwd = recipe.task.cwd or recipe.scratch
            if cwd != recipe.scratch and not os.path.isdir(cwd):
                raise Refusal(_no_folder(cwd))
            if recipe.command is not None:
                return recipe.command
            command = (*self._plain(recipe.task, {**recipe.env, **own}, cwd), cwd)
            if not recipe.varies:
                recipe.command = command
            return command
        work = home + "/work"
        try:
            # What an attempt of that name left behind when the node crashed is not for this one.
            shutil.rmtree(home, ignore_errors=True)
            os.makedirs(work)
            return self._private(recipe, own, home, work)
        except OSError as error:
            raise Refusal(f"the job's folder cannot be prepared: {error}") from error

    def _plain(self, task: Task, env: dict[str, str], cwd: str) -> tuple[str, tuple[str, ...]]:
        """A command of the host. One that went meanwhile is missed by the keeper."""
        name, path = task.argv[0] if task.argv else "", env.get("PATH", "")
        if "/" in name or "$" in name or not _absolute(path):
            return _plain(task, env, cwd, str)
        found = self._found.get((name, path))
        if found is None:
            found, _ = _plain(task, env, cwd, str)
            self._found[name, path] = found
        return found, tuple(expanded(argument, env) for argument in task.argv)

    def _private(self, recipe: Recipe, own_env: dict[str, str], home: str, work: str) -> Command:
        task, binds = recipe.task, dict(recipe.binds)
        own = home
        if sandbox.mounted(home, binds):
            own = HIDDEN
            binds[own] = Path(home)
        own_env["TMPDIR"] = f"{own}/work"
        env = {**recipe.env, **own_env}
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
            command: tuple[str, tuple[str, ...]] = (
                words[0],
                (*words, f"{own}/script", *arguments),
            )
        else:
            command = _plain(task, env, cwd, on_host)
        if not binds:
            return (*command, cwd)
        try:
            words = sandbox.command(binds, cwd)
        except sandbox.SandboxError as error:
            raise Refusal(str(error)) from error
        return words[0], (*words, command[0], *command[1][1:]), work

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
    task: Task, env: dict[str, str], cwd: str, on_host: Callable[[str], str | Path]
) -> tuple[str, tuple[str, ...]]:
    argv = tuple(expanded(argument, env) for argument in task.argv)
    if not argv or not argv[0]:
        raise Refusal("there is no command to run")
    return commandline.executable(argv[0], env, cwd, on_host), argv


def _absolute(path: str) -> bool:
    return all(folder.startswith("/") for folder in path.split(":"))


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
