"""Groups of ranks."""

from rank_fixtures import group, own_group  # noqa: F401
