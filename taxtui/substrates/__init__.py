"""One file per provider; the only modules that import SDKs."""
