"""torch.utils.deterministic. Uninitialized memory is never filled."""

fill_uninitialized_memory = True
