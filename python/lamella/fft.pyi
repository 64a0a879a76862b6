from lamella._fft import *  # noqa: F403
