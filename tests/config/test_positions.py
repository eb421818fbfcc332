"""Errors about a definition's values name its file and the place in it."""

import pytest

from gnnbench.config.overrides import Overrides
from gnnbench.config.positions import place
from gnnbench.core.errors import UsageError
from gnnbench.harness.launch import make_request

HEAD = 'schema_version = 2\nextends = "breakdown"\ndefault_profile = "smoke"\n'
BASELINE = '[axes]\nsystem = ["baseline"]\n'


def request(tmp_path, text, **over):
    (tmp_path / "mine.toml").write_text(HEAD + text)
    return make_request(str(tmp_path / "mine.toml"), Overrides(**over), tmp_path / "out")


@pytest.mark.parametrize(
    "text,words",
    [
        (
            '[axes]\n"baseline.sampler" = ["hopbyhop"]\n',
            "'mine.toml', [axes] baseline.sampler: unknown sampler 'hopbyhop'; did you mean 'hop-",
        ),
        (
            '[systems.baseline]\nsampler.topology = "cloud"\n',
            "'mine.toml', [systems.baseline] sampler.topology: sampler 'hop-by-hop'.topology",
        ),
        (
            "[systems.baseline]\nsampler.threds = 3\n",
            "'mine.toml', [systems.baseline] sampler.threds: sampler 'hop-by-hop' has no setting",
        ),
        (
            '[systems.baseline]\nsamplr = "fused-map"\n',
            "'mine.toml', [systems.baseline] samplr: system 'baseline' has no setting 'samplr'",
        ),
        (
            '[profiles.smoke.systems.baseline]\nsampler = "fused"\n',
            "'mine.toml', [profiles.smoke.systems.baseline] sampler: unknown sampler 'fused'",
        ),
        (
            '[sweeps.s]\n"baseline.sampler" = ["fused"]\n',
            "'mine.toml', [sweeps.s] baseline.sampler: unknown sampler 'fused'",
        ),
        ('[axes]\nsystem = ["basline"]\n', "'mine.toml', [axes] system: unknown system 'basline'"),
        (
            '[profiles.smoke.axes]\ndataset = ["prodcts"]\n',
            "'mine.toml', [profiles.smoke.axes] dataset: unknown dataset 'prodcts'",
        ),
        ('[axes]\nmodel = ["gnc"]\n', "'mine.toml', [axes] model: unknown model 'gnc'; did you"),
        ('[axes]\npick = ["flyod"]\n', "'mine.toml', [axes] pick: unknown pick 'flyod'"),
        ('[axes]\n"basline.sampler" = ["x"]\n', "[axes] basline.sampler: unknown system 'basline'"),
        ('reference = "basline"\n', "'mine.toml', reference: unknown system 'basline'"),
        ("[profiles.smoke]\naxes.seed = [-1]\n", "'mine.toml', profile 'smoke': axis 'seed'"),
        (
            "[[constraints]]\nexclude = {}\n",
            "the constraints of 'mine' leave no combination of its axes",
        ),
    ],
)  # fmt: skip
def test_invalid_value_is_reported_with_file_and_table(tmp_path, text, words):
    with pytest.raises(UsageError) as caught:
        request(tmp_path, text)
    assert words in str(caught.value)
    assert str(caught.value).count("mine.toml") <= 1 and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "over",
    [
        {"options": ("baseline.sampler=hopbyhop",)},
        {"options": ("baseline.sampler=[hopbyhop,fused-map]",)},
        {"models": ("gnc",)},
        {"systems": ("basline",)},
        {"datasets": ("prodcts",)},
    ],
)
def test_invalid_option_names_no_file(tmp_path, over):
    with pytest.raises(UsageError, match=r"^unknown "):
        request(tmp_path, BASELINE, **over)


def test_invalid_value_of_an_extended_definition_names_its_file(tmp_path):
    (tmp_path / "base.toml").write_text(f'{HEAD}[axes]\n"baseline.sampler" = ["fused"]\n')
    (tmp_path / "mine.toml").write_text('schema_version = 2\nextends = "base.toml"\n')
    with pytest.raises(UsageError, match=r"^'base\.toml', \[axes\] baseline\.sampler: unknown"):
        make_request(str(tmp_path / "mine.toml"), Overrides(), tmp_path / "out")
    assert place(str(tmp_path / "mine.toml"), "", "baseline.order") == ""
