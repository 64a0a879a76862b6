"""torch.utils.deterministic: kernels are deterministic, and memory is not filled for it."""

fill_uninitialized_memory = True
