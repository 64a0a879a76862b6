# Types of lamella.fft.
from lamella._fft import *  # noqa: F403
