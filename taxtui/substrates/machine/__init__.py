"""Containers on this machine that no daemon makes: what they are made from, where they are kept, how they are used."""
