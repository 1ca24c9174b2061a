"""What the kubelet's words about an image amount to."""

from __future__ import annotations

import pytest

from taxtui.substrates.kubernetes.api import PodEvents
from taxtui.substrates.kubernetes.pod import Event, Metadata, Pull, pull

MS = 1_000_000


@pytest.mark.parametrize(
    ("reasons", "expected"),
    [
        (["MissingClusterDNS"], "MissingClusterDNS: text"),
        (["Failed", "MissingClusterDNS"], "Failed: text"),
        (["FailedMount", "Failed", "MissingClusterDNS"], "Failed: text"),
        (["FailedScheduling", "MissingClusterDNS"], "MissingClusterDNS: text"),
        ([], ""),
    ],
)
async def test_a_failure_is_preferred_to_a_warning_that_every_pod_has(reasons: list[str], expected: str) -> None:
    class Api:
        async def events(self, pod: Metadata, which: str) -> list[Event]:
            assert which == "type=Warning"
            return [Event(reason=r, message="text", last_timestamp=f"{at}") for at, r in enumerate(reasons)]

    assert await PodEvents(Api()).last_warning(Metadata()) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("took", "took_ms"),
    [("0s", 0), ("345ms", 345), ("2.345s", 2345), ("1m2.3s", 62_300), ("2m0s", 120_000), ("1h0m0.5s", 3_600_500)],
)
def test_a_pull_tells_how_long_it_took_without_waiting_and_the_images_size(took: str, took_ms: int) -> None:
    text = f'Successfully pulled image "docker.io/library/python:3.12" in {took}'
    assert pull(text) == Pull(took_ms * MS, None)  # as older kubelets say it
    assert pull(f"{text} (9m9.9s including waiting)") == Pull(took_ms * MS, None)
    assert pull(f"{text} (9m9.9s including waiting). Image size: 129338587 bytes.") == Pull(took_ms * MS, 129_338_587)


@pytest.mark.parametrize(
    "text",
    [
        "",
        'Container image "python:3.12" already present on machine',
        'Successfully pulled image "x"',
        'Successfully pulled image "x" in ',
        'Successfully pulled image "x" in soon',
        'Successfully pulled image "x" in -2s',
        'Successfully pulled image "x" in 2',
        'Successfully pulled image "x" in 1.2.3s',
        'Successfully pulled image "x" in 99999999h0m0s',
        'Successfully pulled image "x" in 2s. Image size: many bytes.',
        'Successfully pulled image "x" in 2s (2s including waiting). Image size: -1 bytes.',
        f'Successfully pulled image "x" in 2s (2s including waiting). Image size: {10**30} bytes.',
        'Successfully pulled image "x" in 2s\nand more',
    ],
)
def test_what_is_no_pull_or_not_understood_is_nothing(text: str) -> None:
    assert pull(text) is None
