"""The gated registry store: ``privacy-gate:<any registry uri>``."""
