"""Stages that systems are composed of: batch order, sampler, features, schedule."""
