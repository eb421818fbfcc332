"""From cells to rows: worker processes, pairing, resume, time-outs and failures as data."""
