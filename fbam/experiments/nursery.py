"""Imported first by the server that a grid's workers are forked from, so that it ends with the process that needs it.

The server also leaves when that process closes its pipe, but each worker holds the pipe open, and ends with the server.
"""

from fbam.experiments.lifeline import die_with_parent

die_with_parent()
