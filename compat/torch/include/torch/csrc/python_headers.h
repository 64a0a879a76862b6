// Python's headers.
#pragma once
#include <Python.h>
#include <frameobject.h>
#include <structmember.h>
