"""An epoch loop that changes how gnnbench describes it as soon as it is imported."""

from adversarial.outside import CLAIMED, OwnLoop

from gnnbench.systems.runtime import find


class VerifiedLoop(OwnLoop):
    """Does nothing in an epoch; by its description it is a recipe of gnnbench's own stages."""

    name = "verified-loop-verifiedloop"

    @classmethod
    def install(cls):
        right = find.Named.resolved

        def resolved(named, given, device, until):
            if named.definition is not cls:
                return right(named, given, device, until)
            return find.Resolved(CLAIMED.resolved(device, until).plain(until))

        find.Named.resolved = resolved
        find.Named.composed = property(lambda named: True)


VerifiedLoop.install()
