"""The OCI configuration of one sandbox."""

from __future__ import annotations

import math
from typing import Any

from taxtui.plan.spec import SandboxSpec
from taxtui.substrates.machine.root import OUR_FOLDER, Root


def configuration(spec: SandboxSpec, root: Root) -> dict[str, Any]:
    """A container that sleeps for its time to live: no capabilities, its own everything."""
    temporary = ("/tmp", "/dev/shm", OUR_FOLDER)
    return {
        "ociVersion": "1.0.0",
        "hostname": "sandbox",
        "root": {"path": str(root.files), "readonly": False},  # an overlay in memory takes what is written
        "process": {
            "args": ["sleep", str(math.ceil(spec.ttl_s))],
            "env": [f"{key}={value}" for key, value in root.env.items()],
            "cwd": "/",
            "user": {"uid": root.uid, "gid": root.gid},
            "noNewPrivileges": True,
            "capabilities": {},
        },
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            *(
                {"destination": folder, "type": "tmpfs", "source": "tmpfs", "options": ["mode=1777"]}
                for folder in temporary
            ),
        ],
        "linux": {"namespaces": [{"type": kind} for kind in ("pid", "network", "ipc", "uts", "mount")]},
    }
