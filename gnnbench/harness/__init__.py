"""Run cells and write their rows: worker processes, pairing, resume, time-outs, failures as
data.
"""
