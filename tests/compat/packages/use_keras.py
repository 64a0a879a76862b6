# packages: keras==3.15.1, absl-py==2.5.1, h5py==3.16.0, rich==15.0.0, pygments==2.21.0
# packages: markdown-it-py==4.3.0, mdurl==0.1.2, namex==0.1.0
"""Keras on its PyTorch backend: layers, a recurrent model with attention, training and saving."""

import os
import tempfile

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy as np
import torch

keras.utils.set_random_seed(0)
layers = keras.layers
images, labels = np.random.rand(16, 8, 8, 3).astype("float32"), np.random.randint(0, 3, 16)
model = keras.Sequential(
    [
        layers.Input((8, 8, 3)),
        layers.Conv2D(4, 3, activation="relu"),
        layers.BatchNormalization(),
        layers.MaxPooling2D(),
        layers.Flatten(),
        layers.Dropout(0.2),
        layers.Dense(3, activation="softmax"),
    ]
)
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
fitted = model.fit(images, labels, epochs=2, batch_size=8, verbose=0, shuffle=False)
print([round(loss, 4) for loss in fitted.history["loss"]])
print(torch.tensor(model.predict(images[:3], verbose=0)))
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "model.keras")
    model.save(path)
    read = keras.saving.load_model(path)
    print(np.allclose(read.predict(images[:3], verbose=0), model.predict(images[:3], verbose=0)))

words = layers.Input((10,))
x = layers.Embedding(20, 8)(words)
x = layers.LayerNormalization()(layers.MultiHeadAttention(2, 4)(x, x) + x)
x = layers.Bidirectional(layers.LSTM(5))(layers.GRU(6, return_sequences=True)(x))
model = keras.Model(words, layers.Dense(2)(x))
model.compile(keras.optimizers.SGD(0.1, momentum=0.9), "mse")
texts, targets = np.random.randint(0, 20, (12, 10)), np.random.rand(12, 2)
fitted = model.fit(texts, targets, epochs=2, verbose=0, shuffle=False)
print([round(loss, 4) for loss in fitted.history["loss"]])
print(torch.tensor(model.predict(texts[:2], verbose=0)))
