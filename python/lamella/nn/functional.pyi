# The operators are listed one by one: functions of the modules below have the names of some of
# them, and type checkers differ on which of two declarations of a name they use.
from typing import Any

from lamella import avg_pool1d as avg_pool1d
from lamella import celu_ as celu_
from lamella import channel_shuffle as channel_shuffle
from lamella import conv1d as conv1d
from lamella import conv2d as conv2d
from lamella import conv3d as conv3d
from lamella import conv_transpose1d as conv_transpose1d
from lamella import conv_transpose2d as conv_transpose2d
from lamella import conv_transpose3d as conv_transpose3d
from lamella import cosine_similarity as cosine_similarity
from lamella import hardshrink as hardshrink
from lamella import pairwise_distance as pairwise_distance
from lamella import pixel_shuffle as pixel_shuffle
from lamella import pixel_unshuffle as pixel_unshuffle
from lamella import prelu as prelu
from lamella import relu_ as relu_
from lamella import selu_ as selu_
from lamella import sigmoid as sigmoid
from lamella import tanh as tanh
from lamella import threshold_ as threshold_
from lamella._nn import avg_pool2d as avg_pool2d
from lamella._nn import avg_pool3d as avg_pool3d
from lamella._nn import col2im as col2im
from lamella._nn import cross_entropy_loss as cross_entropy_loss
from lamella._nn import elu_ as elu_
from lamella._nn import gelu as gelu
from lamella._nn import gelu_ as gelu_
from lamella._nn import glu as glu
from lamella._nn import hardsigmoid_ as hardsigmoid_
from lamella._nn import hardswish_ as hardswish_
from lamella._nn import hardtanh_ as hardtanh_
from lamella._nn import im2col as im2col
from lamella._nn import leaky_relu_ as leaky_relu_
from lamella._nn import linear as linear
from lamella._nn import log_sigmoid as log_sigmoid
from lamella._nn import mish_ as mish_
from lamella._nn import nll_loss2d as nll_loss2d
from lamella._nn import nll_loss_nd as nll_loss_nd
from lamella._nn import one_hot as one_hot
from lamella._nn import pad as pad
from lamella._nn import reflection_pad1d as reflection_pad1d
from lamella._nn import reflection_pad2d as reflection_pad2d
from lamella._nn import reflection_pad3d as reflection_pad3d
from lamella._nn import relu6_ as relu6_
from lamella._nn import replication_pad1d as replication_pad1d
from lamella._nn import replication_pad2d as replication_pad2d
from lamella._nn import replication_pad3d as replication_pad3d
from lamella._nn import scaled_dot_product_attention as scaled_dot_product_attention
from lamella._nn import silu_ as silu_
from lamella._nn import softplus as softplus
from lamella._nn import softshrink as softshrink
from lamella._nn import upsample_bilinear2d as upsample_bilinear2d
from lamella._nn import upsample_linear1d as upsample_linear1d
from lamella._nn import upsample_nearest1d as upsample_nearest1d
from lamella._nn import upsample_nearest2d as upsample_nearest2d
from lamella._nn import upsample_nearest3d as upsample_nearest3d
from lamella._nn import upsample_trilinear3d as upsample_trilinear3d
from lamella.nn.functional_activations import *  # noqa: F403
from lamella.nn.functional_attention import *  # noqa: F403
from lamella.nn.functional_layers import *  # noqa: F403
from lamella.nn.functional_losses import *  # noqa: F403
from lamella.nn.functional_pooling import *  # noqa: F403

# Further functions of the package, under the same names.
def __getattr__(name: str) -> Any: ...
