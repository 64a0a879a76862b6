"""torch.utils.model_zoo."""

from lamella.compat.hub import load_state_dict_from_url as load_state_dict_from_url
from lamella.compat.hub import tqdm as tqdm

load_url = load_state_dict_from_url
