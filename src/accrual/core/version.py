"""The version of this library: the one place where it is written."""

VERSION = "0.1.0"
