"""Collects the words that a redacted message may have: ``python -m tests.support.vocabulary`` writes words.txt anew.

They come from what taxtui itself says, in its sources and pages, from the operating system's errors, and from the
codes and phrases of the providers below.
"""

from __future__ import annotations

import ast
import errno
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from taxtui.runner.redaction import WORDS

ROOT: Final = Path(__file__).parents[2]
SPEAKING: Final = ("errors.py", "plan", "recording", "runner", "sandboxes", "substrates", "workloads")
"""Whose strings end up in messages, below the package."""
PROVIDERS: Final = """
    Back-off pulling image  ErrImagePull ImagePullBackOff CrashLoopBackOff CreateContainerError RunContainerError
    ContainerCreating ContainerCannotRun OOMKilled Evicted Preempted Unschedulable FailedScheduling FailedMount
    FailedCreatePodSandBox InvalidImageName NodeNotReady DeadlineExceeded Forbidden Unauthorized NotFound Conflict
    nodes are available insufficient cpu memory ephemeral-storage had untolerated taint didn't match affinity selector
    preemption is not helpful for scheduling exceeded quota requested used limited disk pressure network not ready
    failed to pull and unpack image manifest unknown denied access repository does not exist may require login
    OCI runtime exec failed create start container process executable file not found in $PATH no such
    No space left on device permission denied operation not permitted read-only file system too many open files
    connection refused reset by peer broken pipe timed out unreachable host is down bad gateway service unavailable
    internal server error gateway timeout too many requests rate exceeded slow down request limit throttling
    InsufficientInstanceCapacity InstanceLimitExceeded VcpuLimitExceeded MaxSpotInstanceCountExceeded RequestExpired
    RequestLimitExceeded UnauthorizedOperation AuthFailure InvalidClientTokenId ExpiredToken AccessDenied
    InvalidParameterValue InvalidParameterCombination OptInRequired Unsupported CapacityNotAvailable
    TargetNotConnectedException ThrottlingException ClusterNotFoundException CannotPullContainerError
    ResourceInitializationError TaskFailedToStart EssentialContainerExited OutOfMemoryError SpotInterruption
    reclaimed interruption shutdown terminating terminated pending stopped provisioning deprovisioning
    certificate verify failed self-signed expired hostname mismatch handshake protocol version unsupported
    ssh key exchange authentication publickey disconnect host verification channel closed session
    sandbox snapshot workspace toolbox organization region target tier suspended billing credits
    compute configured configuration currently inactive sufficient occurred violates eviction evicted by API etcdserver
    InsufficientHostCapacity shutting-down identity-based policy allows authorized perform action resource trusted
    provided description assigned expected actual invalid required supported unsupported unexpected malformed missing
    already exists in use locked deleted deleting creating created updating degraded unhealthy healthy inconsistent
    retry retried later please try again contact support quota increase reached maximum minimum per concurrent
    cannot could not should must may would because while during before after until since without within against
    disk full memory limit exceeded killed signal segmentation fault aborted out of memory
    daemon is not running starting up socket missing overloaded busy maintenance upgrade
    error dialing backend dial lookup eof
    rpc desc disconnected deallocate victims incoming falling shim unable unrestricted udp filesystem binding accessed
    localhost configmap
"""
JOINED: Final = """
    i/o affinity/selector MountVolume.SetUp
    node.kubernetes.io/not-ready node.kubernetes.io/unreachable node.kubernetes.io/unschedulable
    node.kubernetes.io/disk-pressure node.kubernetes.io/memory-pressure node.kubernetes.io/pid-pressure
    node.kubernetes.io/network-unavailable node.kubernetes.io/out-of-service
    node.cloudprovider.kubernetes.io/uninitialized node-role.kubernetes.io/control-plane
"""
"""Words of Kubernetes' own messages, and its well-known taints, that are plain only together."""
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z']*(?:-[A-Za-z]+)*")
_CAMEL: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_QUOTED: Final = re.compile(r"```.*?```|`[^`]*`|\]\([^)]*\)|https?://\S+", re.DOTALL)  # code and links name things


def strings() -> Iterator[str]:
    """Every string in the sources of what speaks, docstrings too."""
    for name in SPEAKING:
        place = ROOT / "taxtui" / name
        for path in [place] if place.is_file() else sorted(place.rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield node.value


def messages() -> Iterator[str]:
    """The strings in what is raised, and in the tables of what providers' refusals amount to."""
    for path in sorted((ROOT / "taxtui").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        raised = [node for node in ast.walk(tree) if isinstance(node, ast.Raise)]
        for place in [tree] if path.name == "failure.py" else raised:
            for node in ast.walk(place):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield node.value


def words(text: str) -> Iterator[str]:
    """Those of a text, each whole and, where it is an identifier, in its parts."""
    for word in _WORD.findall(text):
        yield from filter(None, (word.strip("'").lower(), *(part.lower() for part in _CAMEL.findall(word))))


def vocabulary() -> set[str]:
    """All of them, in lower case."""
    texts = [*strings(), *messages(), PROVIDERS, *(os.strerror(number) for number in errno.errorcode)]
    texts += [_QUOTED.sub(" ", path.read_text(encoding="utf-8")) for path in sorted((ROOT / "docs").rglob("*.md"))]
    pages = {path.relative_to(ROOT).as_posix().lower() for path in (ROOT / "docs").rglob("*.md")}
    return pages | set(JOINED.lower().split()) | {word for text in texts for word in words(text)}


if __name__ == "__main__":
    WORDS.write_text("\n".join(sorted(vocabulary())) + "\n", encoding="utf-8")
