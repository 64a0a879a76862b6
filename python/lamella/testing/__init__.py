"""lamella.testing: checks of operators.

lamella.testing.opcheck(lamella.ops.mylib.norm, (x,), {"dim": 1})
lamella.testing.check_composite_compliance(lamella.ops.mylib.norm, (x,), {"dim": 1})
"""

from lamella.testing._compliance import check_composite_compliance, composite_check
from lamella.testing._opcheck import OpCheckError, opcheck

__all__ = ["OpCheckError", "check_composite_compliance", "composite_check", "opcheck"]


def __getattr__(name: str) -> object:
    from lamella._missing import missing

    raise missing(__name__, name)
