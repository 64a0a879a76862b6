// CMake wants one source of its own for a library that is otherwise made of the rooms' objects.
