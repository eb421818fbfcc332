"""Trains systems of several ranks."""

import torch

from gnnbench.measure.timeline import Timeline

SMALL = {"batch_size": 64, "fanouts": (3, 2)}  # four batches of 200 seeds, the last one of 8


def trained(system, epochs=3):
    """Return of each epoch the losses of its batches, its counts and the parameters."""
    results = []
    for epoch in range(epochs):
        timeline = Timeline.on("cpu")
        timeline.start()
        system.run_epoch(epoch, timeline)
        timeline.stop()
        losses = torch.stack(system.trainer.losses)
        report = system.audit(epoch)
        assert report.ok, report.reason
        weights = torch.cat([p.detach().flatten() for p in system.trainer.model.parameters()])
        facts = (report.batches, report.seeds, report.sampled_edges, report.unique_nodes)
        results.append((losses, facts, weights))
    return results
