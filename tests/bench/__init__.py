"""
Benchmarks: ratios within one run. Each `bench_*.py` gives its figures by `run(scratch)`.
"""
