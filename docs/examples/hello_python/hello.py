"""A worker in Python: who it is comes from the environment, as with torchrun."""

import os

print(f"hello from rank {os.environ['RANK']} of {os.environ['WORLD_SIZE']}")
