from lamella.nn import functional as functional
