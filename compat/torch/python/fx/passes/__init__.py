"""torch.fx.passes: only `shape_prop` exists."""
