"""What an author of a substrate imports: protocol, registry, conformance suite and kit."""
