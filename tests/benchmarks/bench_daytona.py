"""What the Daytona adapter adds to a call of Daytona's SDK, and when the runner begins to fall behind.

Against the stand-in, in a process of its own: the ratios are ours, the times nobody's.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path

from taxtui.plan.spec import Command, Limits, SandboxSpec
from taxtui.sandboxes.kit.labels import LABEL_RUN
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.daytona import DaytonaOptions
from taxtui.substrates.daytona.substrate import DaytonaSubstrate
from tests.benchmarks.figures import tell
from tests.support.cost_model.rounds import p50_ms
from tests.support.crowd import print_crowds
from tests.support.standins.daytona_standin import KEY
from tests.support.standins.standin_process import serving


async def main() -> None:
    from daytona import AsyncDaytona, DaytonaConfig

    os.environ["DAYTONA_API_KEY"] = KEY
    async with serving("tests.support.standins.daytona_standin") as url:
        options = DaytonaOptions(api_url=url)
        async with DaytonaSubstrate(options) as substrate:
            spec = SandboxSpec(name="taxtui-b-1", labels={LABEL_RUN: "b"}, limits=Limits(), ttl_s=600)
            box = await substrate.create(spec, Marks())
            await box.wait_ready(Marks())
            async with AsyncDaytona(DaytonaConfig(api_key=KEY, api_url=url, target="local")) as sdk:
                same = await sdk.get("taxtui-b-1")
                base, ours = await p50_ms(
                    lambda: same.process.exec("bash -c true", timeout=60), lambda: box.exec(Command(script="true"))
                )
            session = await box.open_session()
            one, _ = await p50_ms(lambda: session.exec(Command(script="true")), lambda: asyncio.sleep(0))
            await session.close()
            await box.destroy()
        tell("daytona exec", ours, "ms", base, "its SDK")
        print(f"exec                  SDK p50 {base:6.2f} ms   adapter {ours:6.2f} ms   x{ours / base:.2f}")
        print(f"                      added {ours - base:+.2f} ms per action (limit 1.5)")
        print(f"session               adapter {one:6.2f} ms   x{one / base:.2f} of the SDK's exec")
        with tempfile.TemporaryDirectory() as folder:
            await print_crowds(lambda ref: DaytonaSubstrate(options), Path(folder))


if __name__ == "__main__":
    asyncio.run(main())
