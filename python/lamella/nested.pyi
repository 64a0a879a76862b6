# Types of lamella.nested.
from lamella._nested import *  # noqa: F403
