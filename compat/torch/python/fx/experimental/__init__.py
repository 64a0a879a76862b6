"""torch.fx.experimental, as far as programs use it; sizes are numbers here, never symbols."""
