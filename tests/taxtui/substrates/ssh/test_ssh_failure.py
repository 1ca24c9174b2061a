"""What keeps us out of a host, and what its shell prints: each row is what comes, with what it amounts to."""

from __future__ import annotations

import socket

import asyncssh
import pytest

from taxtui.errors import CreateFailed, SubstrateError, SubstrateUnavailable, Throttled
from taxtui.substrates.ssh.failure import EXISTS, no_login, not_looked, not_made
from taxtui.substrates.ssh.scripts import facts, listed


@pytest.mark.parametrize(
    ("error", "before", "kind", "words"),
    [
        (asyncssh.HostKeyNotVerifiable("x"), False, SubstrateUnavailable, "is not the one in known_hosts"),
        (asyncssh.PermissionDenied("x"), True, SubstrateUnavailable, "refuses the login"),
        (asyncssh.KeyImportError("Invalid private key"), True, SubstrateUnavailable, "the key cannot be used"),
        (socket.gaierror(-2, "x"), False, SubstrateUnavailable, "host name not found"),
        (ConnectionRefusedError(111, "x"), True, SubstrateUnavailable, "refuses the connection"),
        # sshd's MaxStartups: some of many at once are dropped before the login.
        (asyncssh.ConnectionLost("Connection lost"), True, Throttled, "dropped a connection before the login"),
        (ConnectionResetError(104, "x"), True, Throttled, "dropped a connection before the login"),
        (asyncssh.ConnectionLost("Connection lost"), False, SubstrateUnavailable, "drops the connection"),
        (TimeoutError(), True, SubstrateUnavailable, "does not answer"),
        (OSError(101, "x"), True, SubstrateUnavailable, "cannot be reached"),
        (asyncssh.ProtocolError("odd"), True, SubstrateUnavailable, "no login: odd"),
    ],
)
def test_each_failed_login_has_its_own_message(
    error: Exception, before: bool, kind: type[SubstrateError], words: str
) -> None:
    told = no_login(error, before=before)
    assert type(told) is kind
    assert words in str(told)


def test_why_a_folder_was_not_made() -> None:
    told = not_made("taxtui-r1-1", "r1", EXISTS, b"")
    assert (type(told), str(told)) == (
        CreateFailed,
        "taxtui-r1-1 exists already; taxtui clean --run r1 --force removes it",
    )
    assert str(not_made("n", "r", 1, b"mkdir: n: No space left on device\n")).endswith("No space left on device")


def test_an_unusable_login_shell_is_an_error() -> None:
    assert "says 'This account is not available.'" in str(not_looked(1, b"This account is not available.\n"))
    assert "ended with exit code 1" in str(not_looked(1, b""))


def test_the_description_of_a_host_is_read_or_refused() -> None:
    found = facts(b"taxtui\nLinux 6.1\ngrep /proc\n/tmp/taxtui-ssh-0\nls\nsh\n")
    assert found is not None
    assert (found.kernel, found.missing, found.base) == ("Linux 6.1", ["grep", "/proc"], "/tmp/taxtui-ssh-0")
    assert found.tools == {"ls", "sh"}
    odd = facts(b"taxtui\nLinux\n\n/with a space/x\n")
    assert odd is not None
    assert odd.base == ""
    assert facts(b"welcome\ntaxtui\nLinux\n\n/tmp/x\n") is None
    assert facts(b"taxtui\n") is None


def test_sandboxes_with_any_record_are_listed() -> None:
    rows = [
        b"1000",
        b'/b/taxtui-r1-1\t940 {"taxtui.run":"forged","taxtui.deadline":"2000"}',
        b"/b/taxtui-r1-2\t",
        b"/b/taxtui-r2-1\tnonsense",
        b"/b/with space\t",
        b"no tab at all",
    ]
    found = listed(b"\n".join(rows) + b"\n", None)
    assert [(each.name, each.run_id, each.age_s, each.deadline_unix_s) for each in found] == [
        ("taxtui-r1-1", "r1", 60.0, 2000),
        ("taxtui-r1-2", "r1", 0.0, None),
        ("taxtui-r2-1", "r2", 0.0, None),
    ]
    assert [each.handle for each in listed(b"\n".join(rows), "r2")] == ["/b/taxtui-r2-1"]
