"""The imports of a substrate's author: protocols, values, errors, and the kit.

::

    from taxtui.sandboxes import Capabilities, SandboxSpec, SimpleSubstrate, Throttled

The conformance suite is ``taxtui.sandboxes.conformance``, a substrate for your own tests
``taxtui.sandboxes.fake``. ``taxtui setup --new NAME`` writes a complete example.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from taxtui.errors import CleanupFailed as CleanupFailed
    from taxtui.errors import CreateFailed as CreateFailed
    from taxtui.errors import ExecFailed as ExecFailed
    from taxtui.errors import ExecTimeout as ExecTimeout
    from taxtui.errors import QuotaExceeded as QuotaExceeded
    from taxtui.errors import ReadyTimeout as ReadyTimeout
    from taxtui.errors import SandboxLost as SandboxLost
    from taxtui.errors import SubstrateError as SubstrateError
    from taxtui.errors import SubstrateUnavailable as SubstrateUnavailable
    from taxtui.errors import Throttled as Throttled
    from taxtui.errors import UsageError as UsageError
    from taxtui.plan.spec import Command as Command
    from taxtui.plan.spec import Limits as Limits
    from taxtui.plan.spec import SandboxSpec as SandboxSpec
    from taxtui.sandboxes.kit import text_command as text_command
    from taxtui.sandboxes.kit.blocking_pool import BlockingPool as BlockingPool
    from taxtui.sandboxes.kit.cancellation import finish_despite_cancel as finish_despite_cancel
    from taxtui.sandboxes.kit.cancellation import kill_then_timeout as kill_then_timeout
    from taxtui.sandboxes.kit.cancellation import with_cleanup as with_cleanup
    from taxtui.sandboxes.kit.kept_output import KeptOutput as KeptOutput
    from taxtui.sandboxes.kit.kept_output import exec_result as exec_result
    from taxtui.sandboxes.kit.kill import MARK as MARK
    from taxtui.sandboxes.kit.kill import kill_marked as kill_marked
    from taxtui.sandboxes.kit.kill import kill_script as kill_script
    from taxtui.sandboxes.kit.kill import kill_until_done as kill_until_done
    from taxtui.sandboxes.kit.kill import new_mark as new_mark
    from taxtui.sandboxes.kit.kill import require_killed as require_killed
    from taxtui.sandboxes.kit.labels import LABEL_DEADLINE as LABEL_DEADLINE
    from taxtui.sandboxes.kit.labels import LABEL_RUN as LABEL_RUN
    from taxtui.sandboxes.kit.labels import LABEL_TRIAL as LABEL_TRIAL
    from taxtui.sandboxes.kit.labels import found as found
    from taxtui.sandboxes.kit.process import Process as Process
    from taxtui.sandboxes.kit.removal import remove as remove
    from taxtui.sandboxes.kit.retry import Retry as Retry
    from taxtui.sandboxes.kit.retry import StatePoller as StatePoller
    from taxtui.sandboxes.kit.shell import captured_command as captured_command
    from taxtui.sandboxes.kit.shell.framed_shell import ENDED as ENDED
    from taxtui.sandboxes.kit.shell.framed_shell import ByteStream as ByteStream
    from taxtui.sandboxes.kit.shell.framed_shell import ExplainedSession as ExplainedSession
    from taxtui.sandboxes.kit.shell.framed_shell import FramedShell as FramedShell
    from taxtui.sandboxes.kit.shell.framed_shell import OwnedStream as OwnedStream
    from taxtui.sandboxes.kit.shell.framed_shell import launch_argv as launch_argv
    from taxtui.sandboxes.kit.shell.frames import STDERR as STDERR
    from taxtui.sandboxes.kit.shell.frames import STDOUT as STDOUT
    from taxtui.sandboxes.lifecycle import Builds as Builds
    from taxtui.sandboxes.lifecycle import Snapshots as Snapshots
    from taxtui.sandboxes.lifecycle import Suspends as Suspends
    from taxtui.sandboxes.lifecycle import Usage as Usage
    from taxtui.sandboxes.protocol import Availability as Availability
    from taxtui.sandboxes.protocol import Capabilities as Capabilities
    from taxtui.sandboxes.protocol import Effective as Effective
    from taxtui.sandboxes.protocol import ExecResult as ExecResult
    from taxtui.sandboxes.protocol import Found as Found
    from taxtui.sandboxes.protocol import Marks as Marks
    from taxtui.sandboxes.protocol import Sandbox as Sandbox
    from taxtui.sandboxes.protocol import Session as Session
    from taxtui.sandboxes.protocol import Substrate as Substrate
    from taxtui.sandboxes.simple import SimpleSubstrate as SimpleSubstrate

_PUBLIC: Final = {
    "taxtui.errors": "CleanupFailed CreateFailed ExecFailed ExecTimeout QuotaExceeded ReadyTimeout SandboxLost "
    "SubstrateError SubstrateUnavailable Throttled UsageError",
    "taxtui.plan.spec": "Command Limits SandboxSpec",
    "taxtui.sandboxes.kit": "text_command",
    "taxtui.sandboxes.kit.shell": "captured_command",
    "taxtui.sandboxes.kit.blocking_pool": "BlockingPool",
    "taxtui.sandboxes.kit.cancellation": "finish_despite_cancel kill_then_timeout with_cleanup",
    "taxtui.sandboxes.kit.shell.framed_shell": "ByteStream ENDED ExplainedSession FramedShell OwnedStream launch_argv",
    "taxtui.sandboxes.kit.shell.frames": "STDERR STDOUT",
    "taxtui.sandboxes.kit.kept_output": "KeptOutput exec_result",
    "taxtui.sandboxes.kit.kill": "MARK kill_marked kill_script kill_until_done new_mark require_killed",
    "taxtui.sandboxes.kit.labels": "LABEL_DEADLINE LABEL_RUN LABEL_TRIAL found",
    "taxtui.sandboxes.kit.process": "Process",
    "taxtui.sandboxes.kit.removal": "remove",
    "taxtui.sandboxes.kit.retry": "Retry StatePoller",
    "taxtui.sandboxes.lifecycle": "Builds Snapshots Suspends Usage",
    "taxtui.sandboxes.simple": "SimpleSubstrate",
    "taxtui.sandboxes.protocol": "Availability Capabilities Effective ExecResult Found Marks Sandbox Session Substrate",
}
_HOMES: Final = {name: module for module, names in _PUBLIC.items() for name in names.split()}
"""Public name → module. Imported on first use: a list of substrates needs none of these modules."""

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    """Import a public name's module on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'taxtui.sandboxes' has no attribute {name!r}")
    home = _HOMES[name]
    if home.endswith((".kit", ".shell")):  # the name is a module's
        value: Any = importlib.import_module(f"{home}.{name}")
    else:
        value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value
