"""torch.utils.data: data sets, samplers, and DataLoader with worker processes."""

from lamella.compat.utils.data import _utils as _utils
from lamella.compat.utils.data._utils.collate import default_collate as default_collate
from lamella.compat.utils.data._utils.collate import default_convert as default_convert
from lamella.compat.utils.data._utils.worker import get_worker_info as get_worker_info
from lamella.compat.utils.data.dataloader import DataLoader as DataLoader
from lamella.compat.utils.data.dataset import ChainDataset as ChainDataset
from lamella.compat.utils.data.dataset import ConcatDataset as ConcatDataset
from lamella.compat.utils.data.dataset import Dataset as Dataset
from lamella.compat.utils.data.dataset import IterableDataset as IterableDataset
from lamella.compat.utils.data.dataset import StackDataset as StackDataset
from lamella.compat.utils.data.dataset import Subset as Subset
from lamella.compat.utils.data.dataset import TensorDataset as TensorDataset
from lamella.compat.utils.data.dataset import random_split as random_split
from lamella.compat.utils.data.distributed import DistributedSampler as DistributedSampler
from lamella.compat.utils.data.sampler import BatchSampler as BatchSampler
from lamella.compat.utils.data.sampler import RandomSampler as RandomSampler
from lamella.compat.utils.data.sampler import Sampler as Sampler
from lamella.compat.utils.data.sampler import SequentialSampler as SequentialSampler
from lamella.compat.utils.data.sampler import SubsetRandomSampler as SubsetRandomSampler
from lamella.compat.utils.data.sampler import WeightedRandomSampler as WeightedRandomSampler
