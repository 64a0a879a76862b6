from lamella._special import *  # noqa: F403
