"""Workflow files that the tests start."""

ONE = """version: v4
jobs:
  hello:
    command: [echo, hello]
"""

SLOW = """version: v4
jobs:
  wait:
    command: [sleep, "600"]
"""

HUGE = """version: v4
jobs:
  huge:
    command: ["true"]
    resource:
      cpu: {cores: 4096}
"""

CHAIN = """version: v4
jobs:
  first:
    script: |
      echo one
      echo two >&2
  second:
    command: ["sh", "-c", "echo $FB_JOB_NAME"]
    depends-on: [{name: first}]
"""

BROKEN = """version: v4
jobs:
  a:
    command: [exit]
    depends-on: [{name: b}]
    resource:
      cpu: {corse: 1}
"""
