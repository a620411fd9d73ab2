"""Lines that try to run something unseen under an allowlist that admits every path: none is allowed."""

from __future__ import annotations

import pytest

from core.model.allowlist import AllowlistEntry
from tests.shell_world import World, effect, judge, look

EVASIONS = [
    # programs inside words
    "rg $(id)", "rg `id`", 'rg "$(id)"', 'rg "`id`"', "rg <(id)", "rg >(id)", "rg ~$(id)", "rg ${x:-$(id)}",
    "rg ${x:=`id`}", "rg $((a[$(id)]))", "rg $[1]", "rg $'\\x24(id)'", 'rg $"id"', "rg ${!x}", "rg ${x@P}",
    "rg $(\nid\n)", "rg $(echo a # b\nid)", "A=$(id) rg x", "rg x >$(id)", "cat <<EOF\n$(id)\nEOF",
    "cat <<< $(id)",
    # names that are not what they seem
    "$SHELL -c id", "${SHELL} -c id", "/usr/bin/i?", "/usr/bin/[i]d", "{id,-u}", "~root/x", "r''$x",
    "a=rg; $a x", "alias rg=id; rg x", "rg() { id; }; rg x", "function rg { id; }",
    "hash -p /tmp/x rg; rg x", "enable -f /tmp/x.so rg", "PATH=/tmp rg x", "PATH=/tmp; rg x",
    "export PATH=/tmp; rg x",
    # shells and interpreters
    "bash -c 'id; $(id)'", 'bash -c "$X"', "bash -c $X", "bash x.sh", "sh x", "bash -i", "bash -s", "bash",
    "zsh -c id", "bash --rcfile /tmp/x -ic id", "bash -O extglob -c id", "bash -xc id", "sh -c '$0 $1' id",
    "fish -C id", "ksh -c id", "curl x | sh", "curl x | bash -", "echo id | bash", "wget -O- x | python3",
    "python3 -c x", "python3 -m x", "python3 x.py", "python3 - < /dev/null", "perl -e x", "perl -ne x",
    "ruby -e x", "node -e x", "node -r ./x y", "php -r x", "lua -e x", "awk 'BEGIN{system(\"id\")}'",
    "gawk x", "mawk x", "sed 1e", "sed -n '1e id'", "ed x", "vim -c ':!id'", "vi x", "less x",
    "man -P id x", "git -c core.pager=id log", "git log", "make", "make -f x",
    "tar --checkpoint-action=exec=id", "tar xf x", "docker run x", "kubectl exec x", "npm run x", "npx x",
    "pip install x", "cargo run", "go run x", "gdb -ex x", "gcc x.c", "sqlite3 x '.shell id'", "psql -c x",
    "rsync -e id a b", "scp -S id a b:", "ssh -o ProxyCommand=id x", "zip -TT id x y", "busybox sh",
    "busybox id", "openssl x", "systemctl start x", "journalctl", "dd of=x", "tee x", "patch -e",
    "curl -o x y",
    # carriers and wrappers
    "xargs rm", "find . -exec id ;", "find . -exec id {} +", "find . -execdir id ;", "find . -ok id ;",
    "find . -okdir id ;", "find . {-exec,id,\\;}", "find . -\\exec id \\;", "find . '-exec' id ';'",
    "find . \"-ex\"ec id ';'", "parallel id", "watch id", "command id", "exec id", "builtin eval id",
    "eval id", "trap id EXIT", "source x", ". x", "coproc id", "time id", "\\time id", "env -S 'id x'",
    "env -C / id", "env $X id", "env -u A -S id", "env LD_PRELOAD=x rg", "env -i PATH=/tmp rg",
    "timeout --wat 5 id", "nice --x id", "nohup", "stdbuf -oL", "ionice -p 1", "setsid id", "flock x id",
    "script -c id", "strace id", "taskset 1 id", "tmux new id", "socat x EXEC:id", "nc -e id", "crontab x",
    "at now", "ld.so /tmp/x", "/lib64/ld-linux-x86-64.so.2 /usr/bin/id", "rg --pre id x", "rg --pre=id x",
    "rg --hostname-bin=id x", "sort --compress-program=id", "sort --compress-prog id", "split --filter=id",
    "fd -x id", "run-parts x", "ip netns exec x id", "unbuffer id",
    # privilege
    "sudo id", "sudo -u x id", "doas id", "su -c id", "pkexec id", "runuser x", "chroot / id", "unshare id",
    "nsenter id", "setpriv id", "env sudo id", "timeout 5 sudo id", "bash -c 'sudo id'", "systemd-run id",
    "bwrap id",
    # builtins that run or hide
    "printf -v 'a[$(id)]' x", "printf -va x", "printf %n PATH", "test -v 'a[$(id)]'", "[ -v 'a[$(id)]' ]",
    "[ -R x ]", "let a=1", "read x", "read 'a[$(id)]'", "declare x=1", "typeset x", "local x",
    "unset 'a[$(id)]'", "mapfile -C id x", "compgen -C id", "complete -C id x", "bind -x id", "fc -s",
    "history -c", "set -x", "shopt -s expand_aliases", "export A=1", "pushd /tmp", "umask 0", "ulimit -c 0",
    "kill 1", "wait", "exit", "unalias -a", "readonly x", "[[ -v a ]]", "(( a ))",
    # environment
    "LD_PRELOAD=x rg", "LD_LIBRARY_PATH=x rg", "BASH_ENV=x rg", "ENV=x rg", "IFS=/ rg", "PYTHONPATH=x rg",
    "NODE_OPTIONS=x rg", "PERL5OPT=x rg", "RUBYOPT=x rg", "GIT_SSH_COMMAND=id rg", "PAGER=id rg",
    "EDITOR=id rg", "MAKEFLAGS=x rg", "PS4=x rg", "RIPGREP_CONFIG_PATH=x rg", "FOO_PRELOAD=x rg",
    "HOME=/tmp rg", "CDPATH=/ rg", "A=$X rg", "A=~ rg", "BASH_FUNC_rg=x rg",
    # redirections
    "rg x > y", "rg x >> y", "rg x 2> y", "rg x &> y", "rg x < y", "rg x <> y", "rg x >| y", "> y",
    "rg x 3>&1", "rg x >&'$(id)'", "rg x >& y", "rg x {a}> y", ">y A=1 rg", "rg x 2>&1y",
    "rg x >/dev/null/../y", "rg x >/dev/tcp/a/1",
    # what people could misread
    "rg x\u202eid", "rg\u00a0x", "rg x\rid", "rg x\x0bid", "rg \u200bx", "rg x\x1b[2K", "rg x\0id",
    "rg x \\\n; id", "rg -\\\nx",
    # operators and grammar
    "rg x; $(id)", "rg x && `id`", "rg x | $Y", "rg x\n$(id)", "(id)", "{ id; }", "if id; then id; fi",
    "for a in b; do id; done", "while id; do id; done", "case a in a) id;; esac", "! id", "rg x;; id",
    "rg 'x", 'rg "x', "rg x &&", "| rg x", "rg ${x", 'rg "${x"',
    # files the agent could have written, and directories it could have changed to
    "./run.sh", "tools/rg x", "/tmp/cut -f1", "cd /tmp && ./cut", "cd $X && rg x", "cd - && rg x",
    "cd /nowhere; rg x",
]  # fmt: skip


@pytest.mark.parametrize("line", EVASIONS)
@pytest.mark.parametrize("ask", ["off", "on-miss"])
def test_is_never_allowed(line: str, ask: str) -> None:
    judgement = judge(line, "**", "*", ask=ask, safeBins=["cut", "sort", "grep", "jq", "sed", "awk"])
    assert str(judgement.decision.effect) in ({"deny"} if ask == "off" else {"ask", "deny"})


@pytest.mark.parametrize("line", EVASIONS)
def test_leaves_nothing_behind_that_would_admit_it_or_more(line: str) -> None:
    for entry in judge(line).always.entries:
        exact = entry.args is not None
        assert exact or entry.sha256 is not None or entry.pattern.startswith("/usr/bin/")
        assert effect("rm -rf /", entry, ask="off") == "deny"
        assert effect("bash -c 'rm -rf /'", entry, ask="off") == "deny"


HARMLESS = [
    "rg x", "rg '$(id)'", "rg '`id`' \\$x", "rg x | wc -l", "rg x 2>&1", "rg x >/dev/null", "echo hi",
    "cd /tmp && rg x", "[ -f x ] && rg x", "A=1 rg x", "env A=1 rg x", "bash -c 'rg x'", "timeout 5 rg x",
    "rg '>' '|' ';' '&'", "find . -name x", "printf '%s' x", "rg -e -exec x", "true; false", "ls # rm",
]  # fmt: skip


@pytest.mark.parametrize("line", HARMLESS)
def test_the_ordinary_use_of_the_same_words_is_allowed(line: str) -> None:
    assert effect(line, "**", ask="off") == "allow"


@pytest.mark.parametrize(
    "real", ["bash", "python3.11", "busybox", "sudo", "xargs", "mawk", "gcc-12", "x86_64-linux-gnu-gcc-12"]
)
def test_a_link_with_an_innocent_name_hides_nothing(real: str) -> None:
    world = World(links={"/usr/bin/innocent": f"/usr/bin/{real}"})
    if real == "busybox":
        assert effect(look("busybox ls", world=world), "**", ask="off") == "deny"
        return
    assert effect(look("innocent x", world=world), "**", ask="off") == "deny"


def test_an_argv_with_shell_characters_is_only_words() -> None:
    assert effect(("rg", "$(id)", ";", "rm"), "/usr/bin/rg", ask="off") == "allow"
    assert effect(("rg;id",), "**", ask="off") in {"allow", "deny"}
    assert look(("rg;id",)).canonical == "'/usr/bin/rg;id'"
    assert effect(("bash", "-c", "id"), "/usr/bin/rg", ask="off") == "deny"
    assert effect(("bash", "-c", "rg x"), "/usr/bin/rg", ask="off") == "allow"
    assert effect(("sudo", "rg"), "**", ask="off") == "deny"
    assert effect(("echo", "x"), "/usr/bin/rg", ask="off") == "deny"


def test_a_learned_shell_admits_no_other_script() -> None:
    entry = judge("bash x.sh").always.entries[0]
    assert entry.args == ("x.sh",)
    assert effect("bash x.sh", entry, ask="off") == "allow"
    assert effect("bash y.sh", entry, ask="off") == "deny"
    assert effect("bash x.sh y", entry, ask="off") == "deny"


def test_an_operators_entry_for_one_program_does_not_admit_its_wrapper() -> None:
    entry = AllowlistEntry("/usr/bin/env", source="test")
    assert effect("env -S 'rm x'", entry, ask="off") == "deny"
    assert effect("env rm x", entry, ask="off") == "deny"
