"""Possible file names of the answers of every command, for those who write and those who check them."""

from __future__ import annotations

#: Possible file names of a mapping; the last line has those of a routing, which a new mapping invalidates.
MAP_FILES = (
    "mapping.json", "solution.sln", "certificates.json", "events.jsonl", "report.json", "report.html", "reference.json",
    "better.json", "processors.json", "cores.json", "routes.json",
    "flow-routes.json", "route-certificates.json", "route-events.jsonl", "route-report.json", "route.html",
)  # fmt: skip
#: Of an assignment, beside its programs.
ASSIGN_FILES = (
    "assignment.json",
    "certificates.json",
    "events.jsonl",
    "report.json",
    "report.html",
    "better.json",
)
#: Of a schedule.
SCHEDULE_FILES = (
    "schedule.json", "certificates.json", "events.jsonl", "report.json", "report.html", "better.json", "trace.json",
    "schedule.csv", "earlier.json",
)  # fmt: skip
#: Of a pipeline, beside its placement.
PIPELINE_FILES = (
    "plan.json", "certificates.json", "events.jsonl", "pipeline-report.json", "pipeline.html", "better.json", "trace.json",
)  # fmt: skip
#: Of a front.
FRONT_FILES = (
    "pareto.json", "pareto-certificates.json", "pareto.svg", "pareto.html", "point-*.json", "reference.json", "earlier.json",
)  # fmt: skip
