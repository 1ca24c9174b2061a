"""The conformance suite: every substrate passes it, and a third party runs it on a new substrate.

::

    python -m taxtui.sandboxes.conformance NAME[:key=value,…]

    @pytest.mark.parametrize("check", conformance.checks(), ids=str)
    async def test_conformance(check: Check) -> None:
        await check(lambda: MySubstrate(MyOptions()))

It knows nothing but the protocols of ``taxtui.sandboxes.protocol``. A check that does not apply raises
``NotApplicable``, a broken promise ``Violation``.
"""

from taxtui.sandboxes.conformance.bench import Bench, Check, NotApplicable, Violation, checks

__all__ = ["Bench", "Check", "NotApplicable", "Violation", "checks"]
