from lamella._nested import *  # noqa: F403
