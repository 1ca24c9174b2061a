from __future__ import annotations

from taxtui.tui.colours import SUBSTRATES, VARIANTS, colour, glyph


def test_variants_of_one_substrate_have_looks_of_their_own() -> None:
    labels = ["docker", "docker:runsc", "docker:crun", "docker:kata", "local:bwrap", "local:plain", "ec2"]
    assert len({glyph(label) for label in labels}) == len(labels)
    assert len({colour(label) for label in labels}) == len(labels)


def test_the_usual_variant_looks_as_the_substrate_itself() -> None:
    for label in ("docker:runc", "local:bwrap", "ecs:fargate"):
        plain = label.partition(":")[0]
        assert (glyph(label), colour(label)) == (glyph(plain), colour(plain)) == SUBSTRATES[plain]
    assert glyph("another:thing") == "•"


def test_no_two_looks_are_alike() -> None:
    looks = [*SUBSTRATES.values(), *(look for family in VARIANTS.values() for look in family)]
    assert len({shape for shape, _ in looks}) == len({shade for _, shade in looks}) == len(looks)
