"""What of a command is a credential, and what keeps it from being run again."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taxtui.workloads import credentials, replaying

PLANTED = {
    "export OPENAI_API_KEY=sk-proj-abcdef1234567890abcd": "sk-proj-abcdef1234567890abcd",
    "curl -H 'Authorization: Bearer abcd.efgh' https://example.org": "abcd.efgh",
    "git clone https://joe:hunter22@example.org/x": "hunter22",
    "mysql --password=hunter22": "hunter22",
    "mysql --password hunter22": "hunter22",
    "DB_PASSWORD='hunter22' ./run": "hunter22",
    """python -c 'login(password="hunter22")'""": "hunter22",
    "curl -u joe:hunter22 https://example.org": "hunter22",
    f"aws configure set id AKIA{'A' * 16}": f"AKIA{'A' * 16}",
    f"echo ghp_{'a1' * 18} > t": f"ghp_{'a1' * 18}",
    f"hf auth x hf_{'Ab' * 16}": f"hf_{'Ab' * 16}",
    "cat > k <<E\n-----BEGIN OPENSSH PRIVATE KEY-----\nMIIabc\n-----END OPENSSH PRIVATE KEY-----\nE": "MIIabc",
    f"echo eyJ{'a' * 20}.{'b' * 20}.{'c' * 20}": f"eyJ{'a' * 20}",
}


@pytest.mark.parametrize(("script", "secret"), PLANTED.items())
def test_a_credential_is_found_named_without_itself_and_taken_out(script: str, secret: str) -> None:
    kinds = credentials.kinds(script)
    assert kinds
    assert secret not in " ".join(kinds)
    redacted = credentials.redacted(script)
    assert secret not in redacted
    assert credentials.kinds(redacted) == []


@pytest.mark.parametrize(
    "script",
    [
        "token=$TOKEN run",
        'TOKEN="$OTHER" run',
        "pytest -k token",
        "grep -rn 'secret' src",
        "grep -n password: settings.py",
        "sed -i 's/tokenizer=foo_bar_baz/tokenizer=other/' a.py",
        "python -c 'self.token = get_token()'",
        "if x == token==expected_value: pass",
        "git clone https://github.com/python-attrs/attrs",
    ],
)
def test_what_only_speaks_of_one_is_left(script: str) -> None:
    assert credentials.kinds(script) == []
    assert credentials.redacted(script) == script


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("vim a.py", "waits for a person (vim)"),
        ("cd /testbed && python", "waits for a person (python)"),
        ("A=1 nano x", "waits for a person (nano)"),
        ("git commit", "waits for a person (git commit without a message)"),
        ("git rebase -i HEAD~2", "waits for a person (git rebase -i)"),
        ("printf 'a\nb'\nless x", "waits for a person (less)"),
        ("submit", "is a tool of the harness (submit)"),
        ("cat /installed-agent/install.sh", "uses the harness's own files"),
        ("ls /home/joe/work", "uses a person's home"),
        ("ls '/Users/joe/work'", "uses a person's home"),
        (" \n", "is empty"),
    ],
)
def test_what_cannot_be_run_again_is_named(script: str, why: str) -> None:
    assert replaying.hindrance(script) == why


@pytest.mark.parametrize(
    "script",
    [
        "sleep 0.2; echo hi",
        "python - <<'END'\nimport os\nEND",
        "echo 'print(1)' | python",
        "git commit -qm 'vim'",
        'echo "vim"',
        "cat <<EOF > x\nvim it's\nEOF",
        "python setup.py test",
        "psql -c 'select 1'",
    ],
)
def test_what_can_is_left_alone(script: str) -> None:
    assert replaying.hindrance(script) == ""


def test_what_it_needs_around_it() -> None:
    assert replaying.folders_needed("cd /testbed/src && cat /etc/hosts > /tmp/x; ls /data") == ["/testbed", "/data"]
    assert replaying.needs_network("cd x && pip install -e .")
    assert replaying.needs_network("curl -O https://example.org")
    assert not replaying.needs_network("pip list; git status; echo curl")


@settings(max_examples=80)
@given(st.text(max_size=80) | st.text("vim '\"\\<;|&()\n$`A=/", max_size=40))
def test_whatever_a_command_is_the_answer_is_an_answer(script: str) -> None:
    assert isinstance(replaying.hindrance(script), str)
    assert isinstance(replaying.folders_needed(script), list)
    credentials.kinds(credentials.redacted(script))
