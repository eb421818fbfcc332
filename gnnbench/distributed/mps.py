"""Shares of a GPU's processors that CUDA MPS grants to processes.

PyTorch-Direct, section 3.2.2: MPS limits the kernels of a process, so the gather and the training
run in two processes. MPS reads a client's share from its environment when the process first uses
the GPU.
"""

from __future__ import annotations

import os
import subprocess
import sys

from gnnbench.core.errors import UnsupportedError

SHARE = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"
CONTROL = "nvidia-cuda-mps-control"
WHOLE = 100  # percent
ANSWER_S = 10.0
GRAIN = 2  # processors: MPS rounds a share to a multiple of it

# A process without torch answers within a second; attribute 16 is the number of multiprocessors.
_COUNT = """\
import ctypes, sys
cuda, device, processors = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.c_int()
code = cuda.cuInit(0) or cuda.cuDeviceGet(ctypes.byref(device), int(sys.argv[1]))
code = code or cuda.cuDeviceGetAttribute(ctypes.byref(processors), 16, device)
sys.exit(f"CUDA error {code}") if code else print(processors.value)
"""


def environment(share: int) -> dict[str, str]:
    """Return the environment of a process with ``share`` percent; 100 sets no limit."""
    variables = dict(os.environ)
    if share < WHOLE:
        variables[SHARE] = str(share)
    else:
        variables.pop(SHARE, None)  # this process may have a limit of its own
    return variables


def check_daemon() -> None:
    """Raise ``UnsupportedError`` unless the MPS daemon of this environment answers."""
    start = f"start it before the run with '{CONTROL} -d'"
    try:
        answer = subprocess.run(
            [CONTROL], input="get_server_list\n", text=True, capture_output=True,
            timeout=ANSWER_S, check=False,
        )  # fmt: skip
        said = (answer.stdout + answer.stderr).strip()
        reason = "" if answer.returncode == 0 and "Cannot find" not in said else said
        runs = answer.returncode == 0 and not reason
    except FileNotFoundError:
        runs, reason = False, f"'{CONTROL}' is not installed"
        start = f"install {CONTROL} of the driver's version, and {start}"
    except (OSError, subprocess.TimeoutExpired) as error:
        runs, reason = False, str(error)
    if not runs:
        because = f" ({reason})" if reason else ""
        raise UnsupportedError(
            "schedule.share and schedule.trainer_share need the MPS daemon, which does not"
            f" answer{because}; {start} (it and the run take the same CUDA_MPS_PIPE_DIRECTORY), or"
            " leave both at 100"
        )


def whole_processors(device: int) -> int:
    """Return the number of a GPU's multiprocessors, as a process without a share sees it.

    Raises ``UnsupportedError`` if such a process cannot use the GPU through MPS.
    """
    variables = dict(os.environ)
    variables.pop(SHARE, None)
    counted = subprocess.run(
        [sys.executable, "-c", _COUNT, str(device)],
        env=variables, text=True, capture_output=True, check=False,
    )  # fmt: skip
    if counted.returncode != 0:
        raise UnsupportedError(
            f"the MPS daemon runs, but a new process cannot use the GPU ({counted.stderr.strip()});"
            " see server.log in CUDA_MPS_LOG_DIRECTORY (/var/log/nvidia-mps), or leave"
            " schedule.share and schedule.trainer_share at 100"
        )
    return int(counted.stdout)


def check_share(option: str, share: int, processors: int, whole: int) -> None:
    """Raise ``UnsupportedError`` unless a process has at most its share of ``whole`` processors.

    ``processors``: how many the process has; ``option`` names the share.
    """
    if share < WHOLE and processors > whole * share / WHOLE + GRAIN:
        raise UnsupportedError(
            f"{option}={share} has no effect: the process has {processors} of {whole} processors;"
            " start the MPS daemon before the run, without a share of its own, and run the cell"
            " by 'gnnbench run', which sets the share before the process uses the GPU"
        )
