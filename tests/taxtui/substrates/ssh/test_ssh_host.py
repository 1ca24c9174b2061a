"""A bare host by a real sshd: what keeps us out, what is left of a run, and what flees from its clean-up."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import AsyncIterator, Iterator

import asyncssh
import pytest

from taxtui.errors import CreateFailed, SandboxLost, Throttled
from taxtui.plan.spec import Command
from taxtui.sandboxes.protocol import Availability
from taxtui.substrates.ssh.scripts import facts, listed, mark_of
from taxtui.substrates.ssh.substrate import SshSubstrate, no_login
from tests.support.command_line import Home, marked
from tests.support.sandboxes import RUN, ready
from tests.support.standins.private_sshd import SshBox, new_key, ssh_box

pytestmark = [pytest.mark.sshd, pytest.mark.processes]


@pytest.fixture
def box() -> Iterator[SshBox]:
    with ssh_box() as made:
        yield made


async def said(box: SshBox, **changed: object) -> Availability:
    return await SshSubstrate(box.options(**changed)).check()


@pytest.fixture
async def substrate(box: SshBox) -> AsyncIterator[SshSubstrate]:
    async with SshSubstrate(box.options()) as connected:
        yield connected


async def test_a_check_makes_nothing(box: SshBox) -> None:
    found = await said(box)
    assert (found.ok, found.limits) == (True, "none")
    assert found.version.startswith("OpenSSH")
    assert "bash" in (found.tools or ())
    assert not box.sandboxes.exists()


UNREADABLE = "the key or known_hosts file cannot be read; correct key=FILE or known_hosts=FILE"
UNUSABLE: list[tuple[dict[str, str], str]] = [
    ({"host": ""}, "option host is missing; -s ssh:host=NAME"),
    ({"key": "/nowhere/key"}, UNREADABLE),
    ({"key": "/tmp"}, UNREADABLE),
    ({"known_hosts": "/tmp"}, UNREADABLE),
    ({"folder": "~/x"}, "folder=~/x cannot be used; write an absolute path of letters, digits, dots, - and _"),
    ({"fixtures": "/nowhere"}, "the host has no /nowhere/attrs.git; install there: /nowhere/attrs.git"),
    (
        {"folder": "/nowhere/at/all"},
        "the folder of the sandboxes cannot be made there; set folder=PATH to a path in an existing folder",
    ),
]


async def test_options_that_cannot_be_are_one_line(box: SshBox) -> None:
    for changed, words in UNUSABLE:
        found = await said(box, **changed)
        assert (found.ok, f"{found.detail}; {found.fix}") == (False, words)


async def test_what_keeps_us_out_is_one_line(box: SshBox) -> None:
    for name, passphrase in (("other", ""), ("locked", "secret")):
        new_key(box.folder / name, passphrase=passphrase)
    assert (await said(box, key=str(box.folder / "other"))).detail == "the host refuses the login"
    assert (await said(box, key=str(box.folder / "locked"))).fix == "run ssh-add if the key has a passphrase"
    (box.sshd.folder / "home" / ".bashrc").write_text("echo welcome\n")
    words = "commands cannot be run there: its login shell says 'welcome"
    assert (await said(box)).detail.startswith(words)
    (box.folder / "known_hosts").write_text("")
    assert (await said(box)).detail == "the host's key is not the one in known_hosts"
    box.know(new_key(box.folder / "changed"))
    assert not (await said(box)).ok
    box.sshd.kill()
    found = await said(box)
    assert (found.ok, found.detail) == (False, "the host refuses the connection: no SSH server on that port")
    assert found.fix == "start sshd there, or set port=NUMBER"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (asyncssh.KeyImportError("Invalid private key"), "the key cannot be used"),
        (socket.gaierror(-2, "x"), "host name not found"),
        (asyncssh.ConnectionLost("Connection lost"), "drops the connection"),
        (ConnectionResetError(104, "x"), "drops the connection"),
        (PermissionError(13, "x"), "cannot be read"),
        (TimeoutError(), "does not answer"),
        (OSError(101, "x"), "cannot be reached"),
        (asyncssh.ProtocolError("odd"), "no login: odd"),
    ],
)
def test_each_failed_login_has_its_own_message(error: Exception, words: str) -> None:
    assert words in str(no_login(error))


async def test_a_login_that_is_dropped_after_another_is_throttled(box: SshBox) -> None:
    box.sshd.kill()
    config = box.sshd.folder / "config"
    config.write_text(config.read_text().replace("MaxStartups 200", "MaxStartups 3"))
    box.start()
    async with SshSubstrate(box.options()) as substrate:
        with contextlib.ExitStack() as waiting:
            for _ in range(10):  # logins under way, of anybody
                waiting.enter_context(socket.create_connection(("127.0.0.1", box.port))).recv(1)
            with pytest.raises(Throttled, match="dropped a connection before the login"):
                await substrate.log_in()


def test_the_description_of_a_host_is_read_or_refused() -> None:
    found = facts(b"taxtui\nLinux 6.1\n/proc\n/tmp/taxtui-ssh-0\nls\nsh\n")
    assert found == ("Linux 6.1", ["/proc"], "/tmp/taxtui-ssh-0", {"ls", "sh"})
    odd = facts(b"taxtui\nLinux\n\n/with a space/x\n")
    assert odd and odd.base == ""  # noqa: PT018
    assert facts(b"welcome\ntaxtui\nLinux\n\n/tmp/x\n") is None
    assert facts(b"taxtui\n") is None


async def test_a_folder_open_to_others_is_refused(box: SshBox, substrate: SshSubstrate) -> None:
    box.sandboxes.mkdir(mode=0o755)
    with pytest.raises(CreateFailed, match="is not yours alone; remove the folder, or set folder=PATH"):
        await ready(substrate)


async def test_nothing_flees_from_a_clean_up(box: SshBox, substrate: SshSubstrate) -> None:
    """Not what has left its group and session, nor what has emptied its environment as well."""
    sandbox, other = await ready(substrate, 1), await ready(substrate, 11)
    fled = "setsid sleep 88600 & env -i setsid sh -c 'sleep 88601; true' & mkdir a; cd a; env -i setsid sleep 88602 &"
    await sandbox.exec(Command(script=f"({fled}) >/dev/null 2>&1 </dev/null"))
    await other.exec(Command(script="sleep 88603 >/dev/null 2>&1 </dev/null &"))
    await sandbox.destroy()
    assert [marked(b"sleep\0%d\0" % seconds) for seconds in (88600, 88601, 88602)] == [[], [], []]
    assert marked(mark_of(sandbox.name).encode()) == []
    assert marked(b"sleep\x0088603\0")
    assert (await other.exec(Command(script="echo here"))).stdout == b"here\n"
    await other.destroy()
    assert box.left() == []


async def test_a_cut_connection_loses_its_sandbox_and_the_next_is_made(box: SshBox, substrate: SshSubstrate) -> None:
    sandbox = await ready(substrate)
    box.sshd.cut()
    with pytest.raises(SandboxLost):
        await sandbox.exec(Command(script="true"))
    await sandbox.destroy()
    again = await ready(substrate)
    assert (await again.exec(Command(script="echo here"))).stdout == b"here\n"
    await again.destroy()
    assert box.left() == []


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


async def test_a_sandbox_with_a_spoilt_record_is_found(box: SshBox, substrate: SshSubstrate) -> None:
    sandbox = await ready(substrate)
    spoil = "rm ../record; mkfifo ../record; mkdir '../../a b' ../../taxtui-other-7"
    await sandbox.exec(Command(script=spoil))
    found = await substrate.find()
    assert {(each.name, each.run_id) for each in found} == {("taxtui-other-7", "other"), (sandbox.name, RUN)}
    for each in found:
        await substrate.reap(each)
    assert box.left() == ["a b"]


def test_clean_finds_a_sandbox_by_its_run(box: SshBox, home: Home) -> None:
    for folder in ("taxtui-left-1/work", "taxtui-else-1/work"):
        (box.sandboxes / folder).mkdir(parents=True)
    box.sandboxes.chmod(0o700)
    done = home.run("clean", "-s", box.named(), "--run", "left", "--force")
    assert (done.code, box.left()) == (0, ["taxtui-else-1"])
