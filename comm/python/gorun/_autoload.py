"""The entry point torch.backends: torch 2.5 and newer call it when they are imported."""

import warnings


def register() -> None:
    """Registers the backend "gorun". An error here would make import torch fail, so it is a warning."""
    try:
        import gorun.torch  # noqa: F401
    except Exception as e:
        warnings.warn("gorun: torch.distributed has no backend gorun: %s" % e, stacklevel=2)
