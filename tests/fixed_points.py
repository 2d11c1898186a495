"""The fixed points of the protocol: what each release does in each scenario. Data for several tests."""

SCENARIOS = ("chunk-end", "adjacent", "gap-one", "whole-items")
FIXED_POINTS = {
    "0.11.0": "crash crash crash crash",
    "0.12.0": "ok stuck ok crash",
    "0.13.0": "crash stuck ok crash",
    "0.17.1": "crash stuck ok ok",
    "0.20.0": "crash stuck ok ok",
    "0.24.0": "ok stuck stuck ok",
    "0.27.0": "ok stuck stuck ok",
    "0.28.0": "ok stuck stuck ok",
    "0.29.0": "ok stuck stuck ok",
    "0.32.0": "ok stuck stuck ok",
    "0.33.0": "ok ok ok ok",
    "repaired": "ok ok ok ok",
}
"""Profile -> scenario by scenario: a needed key is absent (crash), no progress (stuck), or neither (ok)."""
