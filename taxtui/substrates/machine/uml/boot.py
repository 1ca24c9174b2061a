"""How a kernel is started, and what its first process does.

The kernel sees nothing of this machine but the root file system, the programs in /usr and two scripts, all of them
read-only: whoever gets the better of it is in a container with namespaces of its own. Its root file system is that
folder, and what is written is in the guest's memory.

The first process takes orders from serial line 0: ``NUMBER shell``, answered by ``done NUMBER exit-code`` once the
shell is through. When nobody holds the other end any more it turns the machine off. Commands have lines of their own,
two each, because a terminal cannot tell standard error from standard output. On each pair waits a shell, already as
the user; it starts a program for one request, in a session of its own. That program has pipes, not terminals, which
would change what some commands print; ``cat`` carries them to the lines. Its end is announced by way of both pipes, so
behind all that it has written. The shell ends once this side has seen that, which hangs both lines up: whatever the
program has left behind can neither read nor write there any more, and is not touched otherwise.
"""

from __future__ import annotations

import shlex
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from taxtui.sandboxes.kit.framed_shell import launch_argv
from taxtui.sandboxes.kit.kill import MARK
from taxtui.substrates.machine.root import Root

KERNEL: Final = "linux.uml"
PAIRS: Final = 8
"""Commands and sessions of one sandbox at once; the next one waits for a line."""
READY: Final = b"\nTAXTUI-LINE-READY\n"
"""What a pair's shell says when it takes a request."""
REQUEST: Final = "TAXTUI-LAUNCH"
SEEN: Final = "TAXTUI-SEEN"
"""The answer to both announcements of a program's end."""
SHARED: Final = "/dev/taxtui"
"""Where a sandbox's folder on this machine is seen, read-only: what is too large for a line goes through it."""
_FIFOS: Final = "/dev/.lines"
_MODULES: Final = Path("/usr/lib/uml/modules")
_LEFT_OUT: Final = "raid6_select_algo"
"""Of the kernel's start: it tries out ways of computing RAID 6 for most of a second, and a machine has no disks."""

# Descriptor 3 of the outer one is its session's terminal, and so is that of the inner one: the end of each hangs its
# line up, and ends its `cat`s. The program in a session of its own gets no signal from that.
_WAITER: Final = (
    r'cd "$1" && shift && unset OLDPWD && printf "\nTAXTUI-LINE-READY\n"; '
    f'while IFS=" " read -r _v _m; do [ "$_v" = {REQUEST} ] && break; done; '
    f'[ -n "$_m" ] || exit 1; {MARK}=$_m setsid "$@"; '
    r'printf "\nTAXTUI-ENDED-%s\n" "$_m"; printf "\nTAXTUI-ENDED-%s\n" "$_m" >&2; '
    f'while read -r _v; do [ "$_v" = {SEEN} ] && break; done'
)
# `cat` takes from the terminal what comes, at once: a shell would read it byte by byte. A program may open what it has
# as standard output once more, by /dev/stdout, also where it is not root's.
# Each program that is started here takes its time, before every command: so one makes all pipes, and one removes them.
_INNER: Final = (
    'exec 3<>"$1" 4>&2 2>/dev/null; '
    'cat <&3 >"$2.in" 3<&- 4<&- & exec <"$2.in"; cat <"$2.out" >&3 3<&- 4<&- & exec >"$2.out" 2>&4 3<&- 4<&-; '
    'rm -f "$2.in" "$2.out" "$2.err"; shift 2; exec "$@"'
)
_OUTER: Final = (
    '[ ! -e "$2.err" ] || rm -f "$2.in" "$2.out" "$2.err"; exec 3<>"$1"; mkfifo -m 666 "$2.in" "$2.out" "$2.err"; '
    'cat <"$2.err" >&3 3<&- & exec 2>"$2.err"; shift 2; setsid "$@" 3<&-'
)


def ended(mark: str) -> bytes:
    """What a pair's shell says when the program of a request has ended."""
    return f"\nTAXTUI-ENDED-{mark}\n".encode()


def boot_script(module: str, folder: str) -> str:
    """Sourced by the first shell, with this machine's files under /mnt: its own root, then the agent in it."""
    return f"""
chroot /mnt /bin/sh -c 'insmod "$0" || busybox insmod "$0"' {module} 2>/mnt/dev/null
agent=$(cat /mnt/taxtui/agent)
mount -t tmpfs tmpfs /tmp && mkdir /tmp/upper /tmp/work /tmp/root || exit 1
mount -t overlay -o lowerdir=/,upperdir=/tmp/upper,workdir=/tmp/work overlay /tmp/root || exit 1
umount -l /mnt
cd /tmp/root
mount -t proc proc proc
mount --move /dev dev
mkdir -p dev/pts dev/shm && mount -t devpts -o mode=620,ptmxmode=666 devpts dev/pts
mount -t tmpfs -o mode=1777 shm dev/shm
mkdir dev/taxtui && mount -t hostfs -o /taxtui/shared none dev/taxtui
mkdir -m 700 .{_FIFOS}
rm -f dev/mem dev/port dev/kmsg dev/ubd* dev/ptmx && ln -s pts/ptmx dev/ptmx
ln -sfn /proc/self/fd dev/fd; ln -sf /proc/self/fd/0 dev/stdin
ln -sf /proc/self/fd/1 dev/stdout; ln -sf /proc/self/fd/2 dev/stderr
[ -d .{folder} ] || {{ mkdir -p .{folder} && chmod 1777 .{folder}; }}
exec chroot . /bin/sh -c "$agent"
"""


def agent_script(root: Root, env: Mapping[str, str]) -> str:
    """The first process's program, in the root file system that it has made."""
    rights = f"--reuid={root.uid} --regid={root.gid} --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all"
    variables = " ".join(f"{key}={shlex.quote(value)}" for key, value in env.items())
    folder = shlex.quote(root.folder)
    signals = "--default-signal=INT --default-signal=QUIT"  # what a shell starts in the background ignores them
    inner = f"sh -c {shlex.quote(_INNER)} sh"
    # Its environment is what commands begin with.
    waiter = f"sh -c {shlex.quote(_WAITER)} sh {folder} {shlex.join(launch_argv())}"
    return f"""
unset TERM console PWD OLDPWD mem uml_dir
export {variables}
keep() {{
    _out=/dev/ttyS$(($1 * 2 + 1)) _err=/dev/ttyS$(($1 * 2 + 2))
    stty raw -echo <$_out; stty raw -echo <$_err
    while :; do
        setsid sh -c {shlex.quote(_OUTER)} sh $_err {_FIFOS}/$1 {inner} $_out {_FIFOS}/$1 \\
            setpriv {rights} -- env {signals} {waiter} </dev/null >/dev/null 2>&1
    done
}}
exec <>/dev/ttyS0 >&0 2>/dev/null
stty raw -echo
echo ready
while read -r _id _script; do
    {{ ( eval "$_script" ) </dev/null >/dev/null; echo "done $_id $?"; }} &
done
echo o >/proc/sysrq-trigger
sleep 60
"""


def kernel_argv(
    *,
    folder: Path,
    root: Root,
    memory_mib: int,
    ttl_s: int,
    lines: Sequence[int],
    seccomp: int,
    env: Mapping[str, str],
) -> list[str]:
    """The kernel, behind what ends it at its time to live whoever else is dead, with all that it has started.

    ``lines``: the descriptors of its serial lines. ``seccomp``: one with a filter, or −1. ``env``: the first shell's.
    """
    ports = [f"ssl{number}=fd:{fd},fd:{fd}" for number, fd in enumerate(lines)]
    links = [link for link in ("bin", "lib", "lib32", "lib64", "sbin") if Path("/", link).is_symlink()]
    return [
        *("timeout", "--signal=KILL", str(ttl_s)),
        *("bwrap", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--die-with-parent"),
        *("--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--ro-bind", "/usr", "/usr"),
        *(word for link in links for word in ("--symlink", str(Path("/", link).readlink()), f"/{link}")),
        *("--ro-bind", str(root.files), "/rootfs", "--ro-bind", str(folder), "/taxtui"),
        *(("--seccomp", str(seccomp)) if seccomp >= 0 else ()),
        *("--", KERNEL, f"mem={memory_mib}M", "uml_dir=/tmp", "root=/dev/root", "rootfstype=hostfs"),
        *("rootflags=/rootfs", "ro", "quiet", "con=null", "ssl=null", *ports),
        f"initcall_blacklist={_LEFT_OUT}",
        *(*(f"{key}={value}" for key, value in env.items()), "init=/bin/sh", "--"),
        *("-c", '"mount -t hostfs none /mnt -o / && . /mnt/taxtui/boot"'),
    ]


def overlay_module() -> str:
    """The kernel's module for private writes; "" where there is none. Blocking."""
    return next((str(path) for path in sorted(_MODULES.glob("*/kernel/fs/overlayfs/overlay.ko"), reverse=True)), "")


def too_many_registers(cpuinfo: str) -> bool:
    """Whether processes have more registers than this kernel has room for: it dies of its first process then.

    Linux 6.1 writes them back in a buffer that AMX's tiles do not fit into, which the machine's kernel refuses.
    """
    return " amx_tile" in cpuinfo


NARROW_ENV: Final = {
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX_Fast_Unaligned_Load,-AVX,-AVX2,-AVX512F,-AVX512VL,-AVX512BW,-AVX512DQ",
    "OPENSSL_ia32cap": "~0x1000000000000000:~0x20",
}
"""For all that runs, where ``without_wide_registers`` holds: the C library and OpenSSL do without AVX then."""


def without_wide_registers() -> bytes:
    """A filter by which the kernel falls back to the registers up to SSE: wider ones belong to each process alone.

    They are then not saved: a page fault is enough to lose them.
    """
    load, equal, answer = 0x20, 0x15, 0x06
    ptrace, get_registers, wide = 101, 0x4204, 0x202
    no_device, allowed = 0x0005_0000 | 19, 0x7FFF_0000
    program = (
        *((load, 0, 0, 4), (equal, 0, 7, 0xC000_003E)),  # x86-64
        *((load, 0, 0, 0), (equal, 0, 5, ptrace), (load, 0, 0, 16), (equal, 0, 3, get_registers)),
        *((load, 0, 0, 32), (equal, 0, 1, wide), (answer, 0, 0, no_device), (answer, 0, 0, allowed)),
    )
    return b"".join(struct.pack("=HBBI", *one) for one in program)
