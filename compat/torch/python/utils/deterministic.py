"""torch.utils.deterministic."""

# Whether new memory is filled under use_deterministic_algorithms(True).
fill_uninitialized_memory = True
