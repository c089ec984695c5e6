"""The version of nmsolve."""

VERSION = "0.1.0"
