"""The verdicts that a claim can get, and their meaning."""

from __future__ import annotations

HOLDS, SHAPE, UNCLEAR, REFUTED = "holds", "holds in shape", "unclear", "refuted"
ON_TWIN, IMPROVED = "holds on a twin", "holds only improved"
NOT_REPRODUCED = "not reproduced"
NOT_CHECKABLE, ILL_POSED, NOT_MEASURED = "not checkable here", "ill-posed", "not measured"
# Verdicts by which the published method does what the paper says, at least in part.
SUPPORTED = (HOLDS, ON_TWIN, SHAPE)
# Verdicts by which a whole interval contradicts the paper.
CONTRADICTED = (NOT_REPRODUCED, REFUTED)
VERDICTS = {
    HOLDS: "every number that counts lies within the claimed range, with its whole interval",
    ON_TWIN: "the same, but measured on a generated twin, and the claim is about the graph itself",
    SHAPE: "the order agrees and the size does not",
    IMPROVED: "the published method fails; a better implementation of the same idea holds",
    UNCLEAR: "the data do not decide: an interval contains a bound or is missing, points are"
    " missing, a time is unreliable, or the setting is not the paper's",
    NOT_REPRODUCED: "the whole interval lies outside the claimed range, but the data, the hardware"
    " or the rival is not the paper's, so this does not refute the claim",
    REFUTED: "a number that counts lies outside the claimed range, with its whole interval",
    NOT_CHECKABLE: "these machines cannot measure it; the reason says what it needs",
    ILL_POSED: "the paper contradicts itself, or does not say what would be measured",
    NOT_MEASURED: "there is no result; the reason has the command, or what is not built yet",
}
