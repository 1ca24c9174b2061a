"""What the Kubernetes adapter adds to a raw call of the SDK, and when the runner begins to fall behind.

Against the stand-in, in a process of its own: the ratios are ours, the times nobody's.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from kubernetes.aio import client, config
from kubernetes.aio.stream import WsApiClient

from taxtui.spec import LABEL_RUN, Command, Limits, SandboxSpec
from taxtui.substrate import Marks
from taxtui.substrates.kubernetes import KubernetesSubstrate
from taxtui.substrates.kubernetes_manifest import KubernetesOptions
from tests.support.crowd import crowd
from tests.support.standin_process import serving

ROUNDS = 300
BADGE_MS = 5.0


async def p50_ms(work: Callable[[], Awaitable[object]], other: Callable[[], Awaitable[object]]) -> tuple[float, float]:
    """Both in turns, so that drift hits them alike."""
    took: tuple[list[float], list[float]] = ([], [])
    for round_ in range(ROUNDS + 20):
        for call, durations in zip((work, other), took, strict=True):
            began = time.perf_counter()
            await call()
            if round_ >= 20:
                durations.append((time.perf_counter() - began) * 1e3)
    return statistics.median(took[0]), statistics.median(took[1])


async def main() -> None:
    async with serving("tests.support.kubernetes_standin") as kubeconfig:
        options = KubernetesOptions(kubeconfig=kubeconfig)
        async with KubernetesSubstrate(options) as substrate:
            spec = SandboxSpec(name="taxtui-b-1", labels={LABEL_RUN: "b"}, limits=Limits(), ttl_s=600)
            box = await substrate.create(spec, Marks())
            await box.wait_ready(Marks())
            settings = client.Configuration()
            await config.load_kube_config(kubeconfig, client_configuration=settings)  # type: ignore[no-untyped-call]
            async with WsApiClient(settings) as sockets:  # type: ignore[no-untyped-call]
                core = client.CoreV1Api(sockets)

                async def raw() -> None:
                    opening = await core.connect_get_namespaced_pod_exec_without_preload_content(
                        "taxtui-b-1", "sandboxes", command=["bash", "-c", "true"], stdout=True, stderr=True, stdin=False
                    )
                    async with opening as socket:
                        async for _ in socket:
                            pass

                base, ours = await p50_ms(raw, lambda: box.exec(Command(script="true")))
            session = await box.open_session()
            one, _ = await p50_ms(lambda: session.exec(Command(script="true")), lambda: asyncio.sleep(0))
            await session.close()
            await box.destroy()
        print(f"exec, new websocket   raw SDK p50 {base:6.2f} ms   adapter {ours:6.2f} ms   x{ours / base:.2f}")
        print(f"                      added {ours - base:+.2f} ms per action (limit 1.5)")
        print(f"session               adapter {one:6.2f} ms   x{one / base:.2f} of a raw exec")
        with tempfile.TemporaryDirectory() as folder:
            for concurrency in (1, 5, 10, 20, 50, 100, 200):
                got = await crowd(lambda ref: KubernetesSubstrate(options), Path(folder), concurrency)
                badge = "badged" if got.worst_lag_p99_ms > BADGE_MS or got.worst_cpu_permille > 800 else "clean"
                print(
                    f"burst of {concurrency:3}          failures {len(got.failures)}   worst lag p99 "
                    f"{got.worst_lag_p99_ms:6.1f} ms   client CPU {got.worst_cpu_permille / 10:.0f} %   {badge}"
                )


if __name__ == "__main__":
    asyncio.run(main())
