"""A load tester that proves what it measured: generators, scenarios, the verdict and the report."""
