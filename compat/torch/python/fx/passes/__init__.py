"""torch.fx.passes: what is there of it is `shape_prop`."""
