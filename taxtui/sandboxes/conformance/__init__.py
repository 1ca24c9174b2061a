"""The conformance suite, for shipped and third-party substrates.

::

    python -m taxtui.sandboxes.conformance NAME[:key=value,…]

    @pytest.mark.parametrize("check", conformance.checks(), ids=str)
    async def test_conformance(check: Check) -> None:
        await check(lambda: MySubstrate(MyOptions()))

The suite uses only the protocols of ``taxtui.sandboxes.protocol``. An inapplicable check raises ``NotApplicable``, a
broken promise ``Violation``.
"""

from taxtui.sandboxes.conformance.bench import Bench, Check, NotApplicable, Violation, checks

__all__ = ["Bench", "Check", "NotApplicable", "Violation", "checks"]
