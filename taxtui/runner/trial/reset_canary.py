"""The check that a reset sandbox is as clean as a fresh one: traces are left before the reset and looked for after.

A file and a directory in the working directory, a file in the sandbox's temporary one, and a process that outlives its
command.
"""

from typing import Final

PLANT: Final = """
mkdir -p .taxtui-canary/deep && echo planted > .taxtui-canary/deep/file &&
  echo planted > "${TMPDIR:-/tmp}/.taxtui-canary"
if command -v setsid >/dev/null 2>&1; then
  setsid sh -c "taxtui_canary=$PWD; sleep 600" </dev/null >/dev/null 2>&1 &
fi
true
"""

# The canary carries the working directory: without isolation, other sandboxes' processes are in sight too. The quotes
# in the middle keep the check's own command line from matching.
CHECK: Final = """
test ! -e .taxtui-canary || exit 91
test ! -e "${TMPDIR:-/tmp}/.taxtui-canary" || exit 92
for process in /proc/[0-9]*/cmdline; do
  case "$(tr '\\0' ' ' 2>/dev/null < "$process")" in *"taxtui_""canary=$PWD;"*) exit 93 ;; esac
done 2>/dev/null
true
"""
