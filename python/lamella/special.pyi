# Types of lamella.special.
from lamella._special import *  # noqa: F403
