"""Kill a campaign with SIGKILL at random instants; nothing finished may be lost or broken.

``python tests/trust/kills.py 200 FOLDER`` prints what happened as JSON; it ends with an assertion
where a promise was broken. A campaign is begun, killed and resumed until it ends; then the next.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
import tomllib
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent / "harness"), str(HERE)]

import psutil  # noqa: E402
from fakes import fake_environment  # noqa: E402
from planted import Quiet  # noqa: E402

from gnnbench.config.overrides import Overrides  # noqa: E402
from gnnbench.harness import campaign  # noqa: E402
from gnnbench.harness.launch import make_request  # noqa: E402
from gnnbench.measure import machine  # noqa: E402
from gnnbench.schema import reader  # noqa: E402
from gnnbench.schema.events import read_journal  # noqa: E402

SYSTEMS = ("fake", "slow", "other", "raises")
PAIRS = 2


def run(out):
    """A campaign in this process, from its beginning or from where it was killed."""
    machine.source_digest = lambda native=True: "the tree may change meanwhile"
    over = Overrides("smoke", SYSTEMS, repeats=PAIRS, options=("reference=fake",))
    resume = any(out.glob("breakdown/run-*"))
    return campaign.run(make_request("breakdown", over, out, resume), Quiet())


def start(out):
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        os._exit(run(out).exit_code)
    except BaseException as error:
        print(repr(error), file=sys.stderr)
    finally:
        os._exit(99)


def state(out):
    """All that is on disk, read as a user would; anything unreadable raises."""
    on_disk = {"done": [], "trials": [], "failed": [], "samples": b"", "torn": 0}
    for folder in out.glob("breakdown/run-*"):
        json.loads((folder / "run.json").read_text())
        tomllib.loads((folder / "definition.toml").read_text())
        if (folder / "cells.csv").exists():
            reader.read(folder)
        events = read_journal(folder / "events.jsonl", dict)
        on_disk["done"] += [e["pair"] for e in events if e["event"] == "done"]
        on_disk["trials"] += [(e["pair"], e["life"]) for e in events if e["event"] == "life"]
        on_disk["failed"] += [e["cell"] for e in events if e["event"] == "failed"]
        read_journal(folder / "samples.jsonl", dict)
        if (folder / "samples.jsonl").exists():
            text = (folder / "samples.jsonl").read_bytes()
            whole = text[: text.rfind(b"\n") + 1]
            on_disk["torn"] += len(whole) != len(text)
            on_disk["samples"] += whole
    return on_disk


def check_progress(before, after):
    for what in ("done", "trials"):
        assert after[what][: len(before[what])] == before[what], "a finished pair was lost"
    assert after["failed"][: len(before["failed"])] == before["failed"]
    assert after["samples"].startswith(before["samples"]), "a sample was lost or changed"


def check_end(out, code):
    assert code == 3, f"the campaign ended with {code}"  # 'raises' fails
    (folder,) = out.glob("breakdown/run-*")
    outcome = reader.read(folder)
    assert outcome.record["finished"] is True
    assert len(outcome.cells) == len(SYSTEMS)
    for row in outcome.cells:
        assert row["status"] == ("crash" if row["system"] == "raises" else "ok"), row
        if row["system"] in ("slow", "other"):
            assert (row["pairs"], row["lives"]) == (PAIRS, PAIRS), row
            assert row["n"] == row["rounds"], row  # a trial that was killed is not counted
    taken = Counter((s["pair"], s["life"], s["round"], s["warmup"], s["id"])
                    for s in outcome.samples)  # fmt: skip
    assert max(taken.values()) == 1, "an epoch was counted twice"
    assert not [p for p in out.rglob(".tmp-*")], "half-written files were left"
    return len(outcome.cells)


def orphans(parent):
    """Workers of a killed campaign: their command line names its process id."""
    mark = f'"parent": {parent},'
    workers = []
    for process in psutil.process_iter(["cmdline"]):
        if any(mark in word for word in process.info["cmdline"] or []):
            workers.append(process)
    return workers


def main(kills, folder, seed=0):
    rng = random.Random(seed)
    begun = time.monotonic()
    campaigns = done = cells = torn = finished_before = 0
    out = folder / "whole"
    out.mkdir(parents=True)
    pid = start(out)
    cells += check_end(out, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    length = time.monotonic() - begun
    known = {"done": [], "trials": [], "failed": [], "samples": b""}
    out = folder / "c0"
    out.mkdir()
    while True:
        pid = start(out)
        end = time.monotonic() + (rng.uniform(0, length) if done < kills else 600)
        status = 0
        while time.monotonic() < end:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                break
            time.sleep(0.002)
        else:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            done += 1
            _, alive = psutil.wait_procs(orphans(pid), timeout=5)
            assert not alive, "a worker outlived its campaign"
            now = state(out)
            check_progress(known, now)
            torn += now["torn"]
            finished_before += len(now["trials"])
            known = now
            continue
        check_progress(known, state(out))
        cells += check_end(out, os.waitstatus_to_exitcode(status))
        campaigns += 1
        known = {"done": [], "trials": [], "failed": [], "samples": b""}
        if done >= kills:
            break
        out = folder / f"c{campaigns}"
        out.mkdir()
    return {
        "kills": done, "campaigns": campaigns, "cells": cells, "torn_lines": torn,
        "finished_pairs_at_kills": finished_before, "campaign_s": round(length, 2),
        "seconds": round(time.monotonic() - begun, 1),
    }  # fmt: skip


if __name__ == "__main__":
    os.environ |= fake_environment()
    print(json.dumps(main(int(sys.argv[1]), Path(sys.argv[2]))))
