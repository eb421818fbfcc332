"""The slow, obvious version of every operator and stage: what the fast ones are tested against."""
