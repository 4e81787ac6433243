"""What measures this library, run from a checkout: `python -m benchmarks.NAME`; not installed."""
