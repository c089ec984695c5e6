"""Certificates beside an answer."""

from __future__ import annotations

from nmsolve.kinds.loading import load_certificates, load_stages
from unknown import Row

HEAD = '{"format": "nmsolve-certificates-1", "problem": "0", '
BOUND = '{"method": "star", "scope": "full", "value": 1, "certificate": {}'
STAGE = '{"objective": "hops", "ceilings": {}, "problem": "0", "bounds": []'
ROWS = [
    Row("check.certificates", load_certificates, "file.json", HEAD + '"bounds": [], "colour": 1}', "colour"),
    Row("check.certificates", load_certificates, "row.json", f'{HEAD}"bounds": [{BOUND}, "unit": "s"}}]}}', "unit"),
    Row("check.certificates", load_stages, "stage.json", f'{HEAD}"stages": [{STAGE}, "limits": 1}}]}}', "limits"),
]  # fmt: skip
