"""Template processes of a run: started when first needed, and asked to fork workers."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import IO

from gnnbench.core import registry
from gnnbench.core.cell import Cell
from gnnbench.harness.interpreter import Environments
from gnnbench.harness.template import MOST_BYTES, NO_MARK, ForkRequest, TemplateArguments
from gnnbench.harness.worker_environment import worker_variables
from gnnbench.measure import machine

# Trials take turns at as many templates, which differ in where memory lies.
TEMPLATES = 3
MOST = 9  # templates at a time; each takes about 150 MB
READY_S = 300.0  # a cold import of a framework takes a minute
START = "GNNBENCH_START"  # "fresh" in this variable: every worker is a new process
# What a template calls or imports for stages of these names.
FRAMEWORKS = {
    "cugraph-pyg": "torch_geometric.loader",
    "dgl": "gnnbench.kernels.dgl_import:import_dgl",
    "pyg": "torch_geometric.loader",
    "pyg-native": "torch_geometric.loader",
}
POLL_S = 0.002


class TemplateFailed(Exception):
    """A template process ended, or cannot fork."""


class ForkedProcess:
    """A worker that a template forked, with the interface of ``subprocess.Popen``."""

    def __init__(self, pid: int, stdin: IO[bytes], stdout: IO[bytes]) -> None:
        self.pid, self.stdin, self.stdout = pid, stdin, stdout
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit code (negative: the signal), or None while it runs."""
        if self.returncode is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:  # reaped elsewhere
                pid, status = self.pid, 0
            if pid == self.pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit code. Raises ``subprocess.TimeoutExpired``."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if deadline is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(f"worker {self.pid}", timeout or 0.0)
            time.sleep(POLL_S)
        return code


class Template:
    """A template process. ``preload`` are modules to import, or functions to call."""

    def __init__(
        self, environments: Environments, env: str, threads: int, preload: Sequence[str]
    ) -> None:
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._channel.settimeout(READY_S)
        arguments = TemplateArguments(
            parent=os.getpid(), socket=theirs.fileno(), preload=list(preload)
        )
        with theirs:
            self._process = subprocess.Popen(
                [*environments.command(env, "gnnbench.harness.template"), json.dumps(arguments)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=worker_variables(environments, env, threads, NO_MARK),
                pass_fds=[theirs.fileno()],
            )

    def fork(self, mark: str, memory_limit_gib: float, errors: IO[bytes]) -> ForkedProcess:
        """Fork a worker whose standard error is ``errors``. Raises ``TemplateFailed``."""
        (commands, to_worker), (from_worker, answers) = os.pipe(), os.pipe()
        try:
            request = ForkRequest(mark=mark, memory_limit_gib=memory_limit_gib)
            message = json.dumps(request).encode()
            socket.send_fds(self._channel, [message], [commands, answers, errors.fileno()])
            reply = self._channel.recv(MOST_BYTES)
        except OSError:
            reply = b""
        finally:
            os.close(commands)
            os.close(answers)
        pid = json.loads(reply)["pid"] if reply else 0
        stdin, stdout = os.fdopen(to_worker, "wb", 0), os.fdopen(from_worker, "rb", 0)
        if not pid:
            stdin.close()
            stdout.close()
            raise TemplateFailed
        return ForkedProcess(pid, stdin, stdout)

    def close(self) -> None:
        """End the process; workers that it forked go on."""
        self._channel.close()
        self._process.kill()
        self._process.wait()


@dataclass
class TemplatePool:
    """The templates of a run, by environment, threads, frameworks and turn."""

    environments: Environments
    _templates: dict[tuple[str, int, tuple[str, ...], int], Template] = field(default_factory=dict)

    def get(self, cell: Cell, trial: int) -> Template | None:
        """Return a template for a cell's worker; it may still import its modules.

        None where the worker is to be a new process: of a system with an epoch loop of its own,
        which need not use torch, and where ``GNNBENCH_START`` is "fresh".
        """
        if not cell.composed or os.environ.get(START) == "fresh":
            return None
        names = {str(stage["name"]) for k in registry.KINDS if (stage := cell.stage(k)) is not None}
        preload = tuple(sorted({FRAMEWORKS[name] for name in names if name in FRAMEWORKS}))
        threads = machine.resolve_threads(cell.threads)
        key = cell.env, threads, preload, trial % TEMPLATES
        template = self._templates.pop(key, None)
        if template is None:
            template = Template(self.environments, cell.env, threads, preload)
        self._templates[key] = template  # the last one is the most recently used
        while len(self._templates) > MOST:
            self._templates.pop(next(iter(self._templates))).close()
        return template

    def close(self) -> None:
        """End all templates."""
        while self._templates:
            self._templates.popitem()[1].close()
