"""The verdicts that a claim can get, and their meaning."""

from __future__ import annotations

HOLDS, SHAPE, UNCLEAR, REFUTED = "holds", "holds in shape", "unclear", "refuted"
IMPROVED = "holds only improved"
NOT_CHECKABLE, ILL_POSED, NOT_MEASURED = "not checkable here", "ill-posed", "not measured"
VERDICTS = {
    HOLDS: "every interval lies within the claimed range",
    SHAPE: "the order agrees and the size does not; or it holds on a twin, not on the graph",
    IMPROVED: "the variant of the paper fails; a better implementation of the same idea holds",
    UNCLEAR: "an interval contains a bound, a time is unreliable, or there is no interval",
    REFUTED: "an interval lies outside the claimed range",
    NOT_CHECKABLE: "these machines cannot measure it; the reason says what it needs",
    ILL_POSED: "the paper contradicts itself, or does not say what would be measured",
    NOT_MEASURED: "there is no result; the reason has the command, or what is not built yet",
}
