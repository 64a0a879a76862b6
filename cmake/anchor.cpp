// An empty source: CMake requires one for a library that otherwise consists of the rooms' objects.
