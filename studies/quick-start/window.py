"""A fixed amount of work: slide a window of five over 10 000 numbers. It prints the processor time."""

import time
from collections import deque

from more_itertools import sliding_window

start = time.process_time()
for _ in range(120):
    last = deque(sliding_window(range(10_000), 5), maxlen=1)
print(f"seconds={time.process_time() - start:.6f}")
assert list(last) == [(9_995, 9_996, 9_997, 9_998, 9_999)]
