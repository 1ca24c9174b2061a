"""What the Kubernetes adapter adds to a raw call of the SDK, and when the runner begins to fall behind.

Against the stand-in, in a process of its own: the ratios are ours, the times nobody's.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from kubernetes.aio import client, config
from kubernetes.aio.stream import WsApiClient

from taxtui.plan.spec import Command, Limits, SandboxSpec
from taxtui.sandboxes.kit.labels import LABEL_RUN
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.kubernetes.options import KubernetesOptions
from taxtui.substrates.kubernetes.substrate import KubernetesSubstrate
from tests.benchmarks.figures import tell
from tests.support.cost_model.rounds import p50_ms
from tests.support.crowd import print_crowds
from tests.support.standins.standin_process import serving


async def main() -> None:
    async with serving("tests.support.standins.kubernetes_standin") as kubeconfig:
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
        tell("kubernetes exec", ours, "ms", base, "its SDK, raw")
        print(f"exec, new websocket   raw SDK p50 {base:6.2f} ms   adapter {ours:6.2f} ms   x{ours / base:.2f}")
        print(f"                      added {ours - base:+.2f} ms per action (limit 1.5)")
        print(f"session               adapter {one:6.2f} ms   x{one / base:.2f} of a raw exec")
        with tempfile.TemporaryDirectory() as folder:
            await print_crowds(lambda ref: KubernetesSubstrate(options), Path(folder))


if __name__ == "__main__":
    asyncio.run(main())
