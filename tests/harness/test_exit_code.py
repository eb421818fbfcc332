import pytest

from gnnbench.harness.campaign import exit_code


def rows(*pairs):
    return [{"system": system, "status": status} for system, status in pairs]


@pytest.mark.parametrize(
    "outcomes,named,absent,code",
    [
        (rows(("a", "ok")), (), False, 0),
        ([], (), False, 0),
        (rows(("a", "ok"), ("b", "missing_dep"), ("c", "unsupported")), (), False, 0),
        (rows(("a", "ok"), ("b", "missing_dep")), ("b",), False, 6),
        (rows(("a", "ok"), ("b", "unsupported")), ("b",), False, 3),
        (rows(("a", "ok"), ("b", "missing_data")), ("b",), False, 0),
        (rows(("a", "ok"), ("b", "missing_data")), (), True, 6),
        (rows(("a", "missing_dep")), (), False, 6),
        (rows(("a", "missing_data")), (), False, 6),
        (rows(("a", "unsupported")), (), False, 3),
        (rows(("a", "ok"), ("b", "incorrect"), ("c", "crash")), (), True, 4),
        *[
            (rows(("a", "ok"), ("b", status)), (), False, 3)
            for status in ("oom_gpu", "oom_host", "timeout", "crash", "unstable")
        ],
    ],
)
def test_exit_code_of_outcomes(outcomes, named, absent, code):
    assert exit_code(outcomes, named, absent) == code
