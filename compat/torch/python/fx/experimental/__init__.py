"""torch.fx.experimental, as far as programs speak to it: sizes are numbers here, never symbols."""
