from lamella._sparse import *  # noqa: F403
