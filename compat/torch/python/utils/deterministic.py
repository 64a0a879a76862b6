"""torch.utils.deterministic. What is not initialized is filled by no mode."""

fill_uninitialized_memory = True
