"""One attack: what it is compared with, and how a run shows what became of it."""

import re
from dataclasses import dataclass

# What a busy machine alone may cause.
NOISE = r"by the harness's clock|after they had ended|a time is not steady"
GAIN, NOISY_GAIN = 1.25, 2.5  # less is no gain; nor is it on a machine that others use
SMALLEST = ("fanouts=[4, 3]", "batch_size=64")  # where no time decides
SMALL, LONG = ("fanouts=[10, 5]",), ("fanouts=[20, 15]", "batch_size=1024")
ALONE = ("verified_loop", "gpu_attacks")  # modules


@dataclass(frozen=True)
class Attack:
    """A system that does other work than it should.

    ``where``    MODULE:OBJECT of this folder
    ``until``    how far its epochs go
    ``caught``   what its row says, a regular expression
    ``passes``   why it is correct and faster by its row, or "" where it is not
    ``gains``    False for less work that is faster with other kernels or more cores than here:
                 its row must then say that something is wrong
    ``always``   False where the result depends on other programs or on permissions
    ``size``     of its epochs: more where their time decides
    ``after``    a system that is compared before it in the same run
    ``options``  of its run, besides those of all
    """

    where: str
    until: str = "sample"
    caught: str = ""
    passes: str = ""
    reference: str = "baseline"
    gains: bool = True
    always: bool = True
    size: tuple[str, ...] = ()
    after: str = ""
    options: tuple[str, ...] = ()

    @property
    def settings(self):
        """Options of its run."""
        size = self.size or (SMALL if self.module in ALONE else SMALLEST)
        hidden = ("hidden=8",) if self.until == "compute" else ()
        return ("threads=1", f"until={self.until}", *size, *hidden, *self.options)

    @property
    def shares_run(self):
        """Whether it runs with others, each in a pair of processes of its own."""
        return not (self.module in ALONE or self.passes or self.after)

    @property
    def module(self):
        """Its module."""
        return self.where.partition(":")[0]

    @property
    def name(self):
        """The name of the system."""
        module, _, attribute = self.where.partition(":")
        return f"{module}-{attribute}".lower().replace("_", "-")

    def reported(self, row):
        """How a row says that its time does not count; "" for a correct and faster system."""
        if row["status"] != "ok":
            return f"{row['status']}: {row['reason']}"
        doubts = [d for d in row["doubtful"].split("; ") if d and self._counts(d)]
        if doubts:
            return f"doubtful: {'; '.join(doubts)}"
        if not row["verified"]:
            return "unverified"
        if row["work_class"] == "different":
            return "different work"
        slow = self.gains and (row["ratio"] or 0.0) <= (GAIN if self.passes else NOISY_GAIN)
        return f"no gain: {row['ratio']}" if slow else ""

    def _counts(self, doubt):
        """Whether a doubt is what should be said, or at least nothing that others cause."""
        return not re.search(NOISE, doubt) or bool(self.caught and re.search(self.caught, doubt))
