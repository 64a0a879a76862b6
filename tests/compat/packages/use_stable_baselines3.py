# packages: stable_baselines3==2.9.2, gymnasium==1.4.0, Farama-Notifications==0.0.6
# packages: psutil==7.2.2
"""Agents trained by PPO, A2C, DQN, SAC and TD3, saved and loaded."""

import os

import numpy as np
from stable_baselines3 import A2C, DQN, PPO, SAC, TD3

# The logs go beside what the program saves, in the folder that the test gives it.
os.environ["SB3_LOGDIR"] = os.path.abspath("logs")

for A, env, k in (
    (PPO, "CartPole-v1", dict(n_steps=64)),
    (A2C, "CartPole-v1", {}),
    (DQN, "CartPole-v1", dict(learning_starts=20, buffer_size=500)),
    (SAC, "Pendulum-v1", dict(learning_starts=20, buffer_size=500)),
    (TD3, "Pendulum-v1", dict(learning_starts=20, buffer_size=500)),
):
    try:
        m = A("MlpPolicy", env, seed=0, device="cpu", **k)
        m.learn(128 if A is PPO else 60)
        o = m.observation_space.sample() * 0 + 0.1
        print(
            A.__name__,
            sum(p.sum() for p in m.policy.parameters()).item(),
            m.predict(o, deterministic=True)[0],
        )
        m.save("agent")
        m2 = A.load("agent")
        print(
            np.allclose(m2.predict(o, deterministic=True)[0], m.predict(o, deterministic=True)[0])
        )
    except Exception as e:
        print(A.__name__, "FAIL", type(e).__name__, str(e)[:300])
