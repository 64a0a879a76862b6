# packages: nnaudio==0.3.4
"""Spectrograms as layers."""

import torch
from nnAudio import features

torch.manual_seed(0)
sound = torch.randn(1, 2000)
stft = features.stft.STFT(
    n_fft=64, hop_length=32, sr=2000, output_format="Magnitude", verbose=False
)
mel = features.mel.MelSpectrogram(sr=2000, n_fft=64, n_mels=8, hop_length=32, verbose=False)
print(stft(sound).mean(-1)[0, :6], mel(sound).mean(-1))
print(
    features.mel.MFCC(sr=2000, n_mfcc=4, n_fft=64, n_mels=8, hop_length=32, verbose=False)(sound)[
        0, :, :3
    ]
)
