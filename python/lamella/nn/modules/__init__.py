"""Layers, activations and losses."""

from lamella.nn.modules.activation import (
    CELU as CELU,
)
from lamella.nn.modules.activation import (
    ELU as ELU,
)
from lamella.nn.modules.activation import (
    GELU as GELU,
)
from lamella.nn.modules.activation import (
    GLU as GLU,
)
from lamella.nn.modules.activation import (
    SELU as SELU,
)
from lamella.nn.modules.activation import (
    Hardsigmoid as Hardsigmoid,
)
from lamella.nn.modules.activation import (
    Hardswish as Hardswish,
)
from lamella.nn.modules.activation import (
    Hardtanh as Hardtanh,
)
from lamella.nn.modules.activation import (
    LeakyReLU as LeakyReLU,
)
from lamella.nn.modules.activation import (
    LogSigmoid as LogSigmoid,
)
from lamella.nn.modules.activation import (
    LogSoftmax as LogSoftmax,
)
from lamella.nn.modules.activation import (
    Mish as Mish,
)
from lamella.nn.modules.activation import (
    PReLU as PReLU,
)
from lamella.nn.modules.activation import (
    ReLU as ReLU,
)
from lamella.nn.modules.activation import (
    ReLU6 as ReLU6,
)
from lamella.nn.modules.activation import (
    Sigmoid as Sigmoid,
)
from lamella.nn.modules.activation import (
    SiLU as SiLU,
)
from lamella.nn.modules.activation import (
    Softmax as Softmax,
)
from lamella.nn.modules.activation import (
    Softmin as Softmin,
)
from lamella.nn.modules.activation import (
    Softplus as Softplus,
)
from lamella.nn.modules.activation import (
    Softsign as Softsign,
)
from lamella.nn.modules.activation import (
    Tanh as Tanh,
)
from lamella.nn.modules.activation import (
    Threshold as Threshold,
)
from lamella.nn.modules.batchnorm import (
    BatchNorm1d as BatchNorm1d,
)
from lamella.nn.modules.batchnorm import (
    BatchNorm2d as BatchNorm2d,
)
from lamella.nn.modules.batchnorm import (
    BatchNorm3d as BatchNorm3d,
)
from lamella.nn.modules.batchnorm import (
    InstanceNorm1d as InstanceNorm1d,
)
from lamella.nn.modules.batchnorm import (
    InstanceNorm2d as InstanceNorm2d,
)
from lamella.nn.modules.batchnorm import (
    InstanceNorm3d as InstanceNorm3d,
)
from lamella.nn.modules.container import (
    ModuleDict as ModuleDict,
)
from lamella.nn.modules.container import (
    ModuleList as ModuleList,
)
from lamella.nn.modules.container import (
    ParameterDict as ParameterDict,
)
from lamella.nn.modules.container import (
    ParameterList as ParameterList,
)
from lamella.nn.modules.container import (
    Sequential as Sequential,
)
from lamella.nn.modules.conv import (
    Conv1d as Conv1d,
)
from lamella.nn.modules.conv import (
    Conv2d as Conv2d,
)
from lamella.nn.modules.conv import (
    Conv3d as Conv3d,
)
from lamella.nn.modules.conv import (
    ConvTranspose1d as ConvTranspose1d,
)
from lamella.nn.modules.conv import (
    ConvTranspose2d as ConvTranspose2d,
)
from lamella.nn.modules.conv import (
    ConvTranspose3d as ConvTranspose3d,
)
from lamella.nn.modules.dropout import (
    AlphaDropout as AlphaDropout,
)
from lamella.nn.modules.dropout import (
    Dropout as Dropout,
)
from lamella.nn.modules.dropout import (
    Dropout1d as Dropout1d,
)
from lamella.nn.modules.dropout import (
    Dropout2d as Dropout2d,
)
from lamella.nn.modules.dropout import (
    Dropout3d as Dropout3d,
)
from lamella.nn.modules.dropout import (
    FeatureAlphaDropout as FeatureAlphaDropout,
)
from lamella.nn.modules.flatten import (
    Flatten as Flatten,
)
from lamella.nn.modules.flatten import (
    PixelShuffle as PixelShuffle,
)
from lamella.nn.modules.flatten import (
    PixelUnshuffle as PixelUnshuffle,
)
from lamella.nn.modules.flatten import (
    Unflatten as Unflatten,
)
from lamella.nn.modules.flatten import (
    Upsample as Upsample,
)
from lamella.nn.modules.linear import (
    Bilinear as Bilinear,
)
from lamella.nn.modules.linear import (
    Identity as Identity,
)
from lamella.nn.modules.linear import (
    Linear as Linear,
)
from lamella.nn.modules.loss import (
    BCELoss as BCELoss,
)
from lamella.nn.modules.loss import (
    BCEWithLogitsLoss as BCEWithLogitsLoss,
)
from lamella.nn.modules.loss import (
    CosineEmbeddingLoss as CosineEmbeddingLoss,
)
from lamella.nn.modules.loss import (
    CrossEntropyLoss as CrossEntropyLoss,
)
from lamella.nn.modules.loss import (
    GaussianNLLLoss as GaussianNLLLoss,
)
from lamella.nn.modules.loss import (
    HingeEmbeddingLoss as HingeEmbeddingLoss,
)
from lamella.nn.modules.loss import (
    HuberLoss as HuberLoss,
)
from lamella.nn.modules.loss import (
    KLDivLoss as KLDivLoss,
)
from lamella.nn.modules.loss import (
    L1Loss as L1Loss,
)
from lamella.nn.modules.loss import (
    MarginRankingLoss as MarginRankingLoss,
)
from lamella.nn.modules.loss import (
    MSELoss as MSELoss,
)
from lamella.nn.modules.loss import (
    NLLLoss as NLLLoss,
)
from lamella.nn.modules.loss import (
    PoissonNLLLoss as PoissonNLLLoss,
)
from lamella.nn.modules.loss import (
    SmoothL1Loss as SmoothL1Loss,
)
from lamella.nn.modules.loss import (
    SoftMarginLoss as SoftMarginLoss,
)
from lamella.nn.modules.loss import (
    TripletMarginLoss as TripletMarginLoss,
)
from lamella.nn.modules.module import (
    Module as Module,
)
from lamella.nn.modules.normalization import (
    GroupNorm as GroupNorm,
)
from lamella.nn.modules.normalization import (
    LayerNorm as LayerNorm,
)
from lamella.nn.modules.normalization import (
    RMSNorm as RMSNorm,
)
from lamella.nn.modules.pooling import (
    AdaptiveAvgPool1d as AdaptiveAvgPool1d,
)
from lamella.nn.modules.pooling import (
    AdaptiveAvgPool2d as AdaptiveAvgPool2d,
)
from lamella.nn.modules.pooling import (
    AdaptiveAvgPool3d as AdaptiveAvgPool3d,
)
from lamella.nn.modules.pooling import (
    AdaptiveMaxPool1d as AdaptiveMaxPool1d,
)
from lamella.nn.modules.pooling import (
    AdaptiveMaxPool2d as AdaptiveMaxPool2d,
)
from lamella.nn.modules.pooling import (
    AdaptiveMaxPool3d as AdaptiveMaxPool3d,
)
from lamella.nn.modules.pooling import (
    AvgPool1d as AvgPool1d,
)
from lamella.nn.modules.pooling import (
    AvgPool2d as AvgPool2d,
)
from lamella.nn.modules.pooling import (
    AvgPool3d as AvgPool3d,
)
from lamella.nn.modules.pooling import (
    MaxPool1d as MaxPool1d,
)
from lamella.nn.modules.pooling import (
    MaxPool2d as MaxPool2d,
)
from lamella.nn.modules.pooling import (
    MaxPool3d as MaxPool3d,
)
from lamella.nn.modules.sparse import (
    Embedding as Embedding,
)
