"""Ways to Sayso's own state from a run on the host: a script, and what would show that it succeeded.

LEAK: the secret, or an answer of a program outside, stands in the output. SPOIL: what is Sayso's own has
changed. GAIN: it ends with 0. `control` stands in for the script where that cannot succeed even in a run that
nothing holds.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass

LEAK, SPOIL, GAIN = "leak", "spoil", "gain"
_NOT_ROOT = "only root may, held or not"
_OWN = "in a user namespace of its own alone, which a held run cannot have"


@dataclass(frozen=True)
class Way:
    """One way out; `why` says what the control shows instead."""

    name: str
    script: str
    proof: str = LEAK
    control: str | None = None
    why: str = ""
    needs_root: bool = False  # to be laid out
    needs_cgroup: bool = False  # that root can make and give away
    workspace: str = "w"
    cwd: str | None = None


# Numbers of system calls that perl knows by no name.
_CALLS = {
    "x86_64": {"name_to_handle_at": 303, "process_vm_readv": 310, "ptrace": 101, "renameat2": 316},
    "aarch64": {"name_to_handle_at": 264, "process_vm_readv": 270, "ptrace": 117, "renameat2": 276},
}


def _perl(text: str) -> str:
    for name, number in _CALLS[platform.machine()].items():
        text = text.replace(f"<{name}>", str(number))
    return f"perl -MSocket -e '{text}'"


def _exchange(place: str) -> str:
    names = f'my ($a, $b) = ("$ENV{{W}}/e", $ENV{{{place}}}); '
    return _perl(f'{names}syscall(<renameat2>, -100, $a, -100, $b, 2) == 0 or die "$!"')


def _connect(path: str, kind: str = "SOCK_STREAM") -> str:
    return _perl(
        f'socket(my $s, AF_UNIX, {kind}, 0) or die; connect($s, pack_sockaddr_un({path})) or die "$!"; '
        "sysread($s, my $t, 99); print $t"
    )


def _in_namespace(name: str, script: str) -> Way:
    return Way(name, f"unshare -Urm sh -c '{script}'", GAIN, why=_OWN)


READ = [
    Way("read the token", 'cat "$S/token"'),
    Way("read the database by dd", 'dd if="$S/sayso.db" status=none'),
    Way("search all", 'grep -rh . "$G" --exclude=config.yaml'),
    Way("from the parent", 'cd "$P" && cat state/token'),
    Way("by a relative way", 'cd "$W" && cat ../g/p/state/token'),
    Way("archive all", 'tar -cf - -C "$P" state'),
    Way("copy the directory", 'cp -r "$S" "$W/copied" && cat "$W/copied/token"'),
    Way("the configuration", 'cat "$C"'),
    Way("a list of files for grep", 'printf "%s" "$C" >"$W/l"; xargs cat <"$W/l"'),
    Way("a variable that names it", 'MAGIC="$S/token" sh -c \'cat "$MAGIC"\''),
    Way("rules of file by a variable", 'MAGIC="$S/token" file /bin/sh 2>&1'),
    Way("a list of files for xz", 'echo "$S/token" >"$W/l"; xz -kc --files="$W/l" | xz -dc'),
    Way("a list of files for xz on its input", 'echo "$S/token" | xz -kc --files | xz -dc'),
    Way("words of bzip2 by a variable", 'BZIP2="$S/token" bzip2 -kc | env -u BZIP2 bunzip2'),
    Way("a list of files for zstd", 'zstd -qkc --filelist "$S/token" 2>&1'),
    Way("a link made before", 'cat "$W/before/token"'),
    Way("a link made by the run", 'ln -s "$S" "$W/l" && cat "$W/l/token"'),
    Way("a link to the parent", 'ln -s "$P" "$W/l" && cat "$W/l/state/token"'),
    Way("a link to the configuration", 'ln -s "$C" "$W/l" && cat "$W/l"'),
    Way("a hard link to the token", 'ln "$S/token" "$W/l" && cat "$W/l"'),
    Way("a hard link to the configuration", 'ln "$C" "$W/l" && cat "$W/l"'),
    Way("root of oneself", 'cat "/proc/self/root$S/token"'),
    Way("root of a thread", 'cat "/proc/thread-self/root$S/token"'),
    Way(
        "a descriptor inherited",
        "cat /proc/self/fd/[3-9] /proc/self/fd/1[0-9]",
        control='exec 7<"$S/token"; cat /proc/self/fd/7',
        why="no run inherits any; the control opens one",
    ),
    Way(
        "a handle instead of a name",
        _perl(
            'my $h = pack("Ii", 128, 0) . "\\0" x 128; my ($p, $m) = ("$ENV{S}/token", pack("i", 0)); '
            'syscall(<name_to_handle_at>, -100, $p, $h, $m, 0) == 0 or die "$!"; print $ENV{SECRET}'
        ),
        why="it takes the handle alone, which is the half of it that does not need root",
    ),
    Way("io in the kernel by sendfile", 'exec 7<"$S/token" && cat <&7'),
]
PROCESSES = [
    Way("a pair of datagram sockets", _perl("socketpair(my $a, my $b, AF_UNIX, SOCK_DGRAM, 0) or die"), GAIN),
    Way("a pair of raw sockets", _perl("socketpair(my $a, my $b, AF_UNIX, 2048 | 3, 0) or die"), GAIN),
    Way("freeze what is in a control group", 'echo 1 >"$K/cgroup.freeze"', GAIN, needs_cgroup=True),
    Way("make a control group", 'mkdir "$K/own"', GAIN, needs_cgroup=True),
    *(
        Way(f"{part} of a process outside", f'cat "/proc/$N/{part}"')
        for part in ("cwd/token", "fd/3", "environ")
    ),
    Way("root of a process outside", 'cat "/proc/$N/root$S/token"'),
    Way("a task of a process outside", 'cat "/proc/$N/task/$N/root$S/token"'),
    Way(
        "memory of a process outside",
        _perl(
            'open my $m, "<", "/proc/$ENV{N}/maps" or die; my @r = grep /rw-p/, <$m>; open my $f, "<", '
            '"/proc/$ENV{N}/mem" or die; for (@r) { /^(\\w+)-(\\w+)/; seek $f, hex $1, 0; '
            'read $f, my $t, hex($2) - hex($1); print "$ENV{SECRET}\\n" if index($t, $ENV{SECRET}) >= 0 }'
        ),
    ),
    Way(
        "read a process by process_vm_readv",
        _perl(
            'open my $m, "<", "/proc/$ENV{N}/maps" or die; my ($a) = (<$m>)[0] =~ /^(\\w+)/; '
            'my $t = "\\0" x 4; my ($l, $r) = (pack("PQ", $t, 4), pack("QQ", hex $a, 4)); '
            'syscall(<process_vm_readv>, $ENV{N} + 0, $l, 1, $r, 1, 0) == 4 or die "$!"'
        ),
        GAIN,
    ),
    Way("trace a process outside", _perl('syscall(<ptrace>, 16, $ENV{N} + 0, 0, 0) == 0 or die "$!"'), GAIN),
    Way(
        "take a descriptor by pidfd_getfd",
        _perl(
            "my $p = syscall(434, $ENV{N} + 0, 0); $p >= 0 or die; my $d = syscall(438, $p, 3, 0); "
            '$d >= 0 or die "$!"; open my $f, "<&=", $d or die; seek $f, 0, 0; print <$f>'
        ),
    ),
    Way(
        "enter its mount namespace",
        "nsenter -t $N -m true",
        GAIN,
        control="readlink /proc/$N/ns/mnt",
        why=f"{_NOT_ROOT}; the control sees which it is",
    ),
    Way(
        "enter its user namespace",
        "nsenter -t $N -U true",
        GAIN,
        control="readlink /proc/$N/ns/user",
        why="it is one's own already; the control sees which it is",
    ),
    Way(
        "a closed process: its root",
        'cat "/proc/$D/root$S/token"',
        control='cat "/proc/$N/root$S/token"',
        why="it is closed to its user; the control asks the open one",
    ),
    Way(
        "a closed process: its environment",
        'cat "/proc/$D/environ"',
        control='cat "/proc/$N/environ"',
        why="as above",
    ),
]
SPOILS = [
    Way("write the token", 'echo x >"$S/token"', SPOIL),
    Way("append to the database", 'echo x >>"$S/sayso.db"', SPOIL),
    Way("truncate the token", 'truncate -s 0 "$S/token"', SPOIL),
    Way("remove the token", 'rm -f "$S/token"', SPOIL),
    Way("rename over the token", 'echo x >"$W/x" && mv -f "$W/x" "$S/token"', SPOIL),
    Way("a new file in the state", 'touch "$S/new"', SPOIL),
    Way("rename the state", 'mv "$S" "$P/moved" && cat "$P/moved/token"', SPOIL),
    Way("rename the parent", 'mv "$P" "$G/moved"', SPOIL),
    Way("rename what is above", 'mv "$G" "$B/moved"', SPOIL),
    Way(
        "another in the place of the parent", 'mv "$P" "$W/old" && mkdir -p "$S" && echo x >"$S/token"', SPOIL
    ),
    Way("a link in the place of the state", 'mv "$S" "$W/old"; ln -sT "$W" "$S"', SPOIL),
    Way("a link in the place of the parent", 'mv "$P" "$W/old"; ln -sT "$W" "$P"', SPOIL),
    Way(
        "exchange the state",
        'mkdir -p "$W/e" && ' + _exchange("S"),
        SPOIL,
    ),
    Way(
        "exchange the parent",
        'mkdir -p "$W/e/state" && ' + _exchange("P"),
        SPOIL,
    ),
    Way(
        "exchange the configuration",
        'echo x >"$W/e" && ' + _exchange("C"),
        SPOIL,
    ),
    Way("write the configuration", 'echo x >"$C"', SPOIL),
    Way("remove the configuration", 'rm -f "$C"', SPOIL),
    Way("rename over the configuration", 'echo x >"$W/x" && mv -f "$W/x" "$C"', SPOIL),
    Way("edit the configuration in place", 'sed -i s/token/x/ "$C"', SPOIL),
    Way("remove all", 'rm -rf "$S" "$C"', SPOIL),
    Way("write a program file", 'echo evil >"$X/core.py"', SPOIL),
    Way("copy over a program file", 'echo evil >"$W/x" && cp "$W/x" "$X/lib/x.py"', SPOIL),
    Way("a module beside the program", 'echo evil >"$X/yaml.py"', SPOIL),
    Way("rename the program", 'mv "$X" "$W/moved"', SPOIL),
    Way("rename what holds the program", 'mv "$B/opt" "$W/moved"', SPOIL),
    Way("a hard link to write through", 'ln "$X/core.py" "$W/l" && echo evil >"$W/l"', SPOIL),
    Way("the program by the root of another", 'echo evil >"/proc/$N/root$X/core.py"', SPOIL),
    Way("the state by the root of another", 'echo evil >"/proc/$N/root$S/token"', SPOIL),
]
PROGRAMS = [
    Way("a socket in the state", _connect('"$ENV{S}/s"')),
    Way("a socket in a directory of its own", _connect('"$ENV{B}/sockets/s"')),
    Way("a socket beside files", _connect('"$ENV{B}/mixed/s"')),
    Way("a socket by a link", 'ln -s "$B/sockets" "$W/l" && ' + _connect('"$ENV{W}/l/s"')),
    Way("a socket by the root of another", _connect('"/proc/$ENV{N}/root$ENV{B}/sockets/s"')),
    Way("an abstract socket", _connect('"\\0$ENV{A}"')),
    Way("write to the terminal of another", 'echo x >"$PTY"', GAIN),
    Way("read the terminal of another", 'timeout 1 head -n 1 "$PTY"'),
    Way("the terminal by the root of another", 'echo x >"/proc/$N/root$PTY"', GAIN),
    Way(
        "a console",
        "for c in tty0 ttyS0 vcs; do [ -c /dev/$c ] && echo x >/dev/$c && exit; done; exit 1",
        GAIN,
        control="true",
        why=_NOT_ROOT,
    ),
    Way(
        "what types into terminals",
        "[ -c /dev/uinput ] && echo x >/dev/uinput",
        GAIN,
        control="true",
        why=_NOT_ROOT,
    ),
    Way(
        "a controlling terminal", "echo x >/dev/tty", GAIN, control="true", why="no run has one, held or not"
    ),
]
RIGHTS = [
    Way("a user namespace", "unshare -U true", GAIN),
    _in_namespace("a mount of one's own", "true"),
    _in_namespace("the mask off", 'umount -l "$S" || mount -t tmpfs none "$S"'),
    _in_namespace("a bind of all", 'mkdir -p "$W/r" && mount --rbind / "$W/r"'),
    _in_namespace(
        "an overlay",
        'mkdir -p "$W/u" "$W/v" "$W/m" && mount -t overlay -o '
        '"lowerdir=$P,upperdir=$W/u,workdir=$W/v,userxattr" none "$W/m"',
    ),
    _in_namespace("a program writable again", 'mount --bind "$X" "$X" && mount -o remount,bind,rw "$X"'),
    Way(
        "mount without a namespace",
        'mount -t tmpfs none "$W"',
        GAIN,
        control="unshare -Urm mount -t tmpfs none $W",
        why=_OWN,
    ),
    Way("umount without a namespace", 'umount -l "$S"', GAIN, control="unshare -Urm true", why=_OWN),
    Way("another bubblewrap", "bwrap --dev-bind / / true", GAIN),
    Way("rights by a setuid program", '"$B/risen" "$B/of-root"', needs_root=True),
    Way("rights by a program with capabilities", '"$B/capable" "$B/of-root"', needs_root=True),
    Way("the core pattern", "echo x >/proc/sys/kernel/core_pattern", GAIN, control="true", why=_NOT_ROOT),
]
_SITE = '"$H/.local/lib/python3/site-packages/usercustomize.py"'
# What other programs of the user read and run later.
HOMELY = [
    Way("a new dot file", 'echo evil >"$H/.zshenv"', SPOIL),
    Way("a new dot directory", 'mkdir "$H/.pam"', SPOIL),
    Way("a new directory of programs", 'mkdir "$H/sbin"', SPOIL),
    Way("write a dot file", 'echo evil >>"$H/.bashrc"', SPOIL),
    Way("remove a dot file", 'rm -f "$H/.bashrc"', SPOIL),
    Way("rename over a dot file", 'echo evil >"$W/x" && mv -f "$W/x" "$H/.bashrc"', SPOIL),
    Way("exchange a dot file", 'echo evil >"$W/e" && B="$H/.bashrc" && export B && ' + _exchange("B"), SPOIL),
    Way("a new file in a dot directory", 'echo evil >"$H/.config/starship.toml"', SPOIL),
    Way("a file deep in a dot directory", 'echo evil >"$H/.config/tmux/tmux.conf"', SPOIL),
    Way("a file that each shell sources", 'echo evil >"$H/.cargo/env"', SPOIL),
    Way("a module that each Python imports", f"echo evil >{_SITE}", SPOIL),
    Way("rename a dot directory away", 'mv "$H/.config" "$H/projects/c"', SPOIL),
    Way("rename within a dot directory", 'mv "$H/.config/tmux" "$H/.config/t2"', SPOIL),
    Way("a directory of work becomes a dot directory", 'mv "$H/projects" "$H/.zsh"', SPOIL),
    Way("a program", 'echo evil >"$H/bin/ls"', SPOIL),
    Way("another program", 'echo evil >"$H/bin/tool"', SPOIL),
    Way("a program of go", 'echo evil >"$H/go/bin/ls"', SPOIL),
    Way("rename programs of go", 'mv "$H/go/bin" "$H/go/b2"', SPOIL),
    Way("rename go", 'mv "$H/go" "$H/projects/go"', SPOIL),
    Way("rename the home", 'mv "$H" "$B/u/h2"', SPOIL),
    Way("rename what is above the home", 'mv "$B/u" "$B/u2"', SPOIL),
    Way("through a link", 'ln -s ../.config "$H/projects/l" && echo evil >"$H/projects/l/x"', SPOIL),
    Way("through a hard link", 'ln "$H/.bashrc" "$H/projects/l" && echo evil >"$H/projects/l"', SPOIL),
    Way("through the way up", 'cd "$H/projects" && echo evil >../.bashrc', SPOIL),
    Way("what a link at the top leads to", 'echo evil >"$H/dotfiles/vim/vimrc"', SPOIL),
    Way("beside what a link at the top leads to", 'echo evil >"$H/dotfiles/vim/x"', SPOIL),
    Way("rename what holds it", 'mv "$H/dotfiles" "$H/projects/d"', SPOIL),
    Way("the home as cwd", "echo evil >.zshenv", SPOIL, cwd="u/home"),
    Way("the home as workspace", "echo evil >.zshenv", SPOIL, workspace="u/home"),
    Way("a dot directory as cwd", "echo evil >x", SPOIL, cwd="u/home/.config"),
    Way("a directory in a dot directory as cwd", "echo evil >x", SPOIL, cwd="u/home/.config/tmux"),
    Way("a dot directory as workspace", "echo evil >x", SPOIL, workspace="u/home/.config"),
    Way("programs as workspace", "echo evil >x", SPOIL, workspace="u/home/bin"),
    Way(
        "beside a workspace in a dot directory",
        "echo evil >../x",
        SPOIL,
        workspace="u/home/.ws/deep/main",
    ),
]
# What must be possible all the same.
WORK = [
    Way(
        "a pair of streams",
        "perl -MSocket -e 'socketpair(my $a, my $b, AF_UNIX, SOCK_STREAM, 0) or die'",
        GAIN,
    ),
    Way("write a project", 'mkdir -p "$H/projects/x/.git" && echo x >"$H/projects/x/.git/HEAD"', GAIN),
    Way("read dot files", 'grep -q was "$H/.bashrc" && grep -q was "$H/.vimrc"', GAIN),
    Way("a cache of go", 'echo x >"$H/go/pkg/x" && echo x >"$H/go/go.env"', GAIN),
    Way("beside what a dot file leads to", 'echo x >"$H/dotfiles/README"', GAIN),
    Way("a project from the home", "echo x >projects/x", GAIN, cwd="u/home"),
    Way("a workspace in a dot directory", "echo x >notes && mkdir d", GAIN, workspace="u/home/.ws/deep/main"),
    Way(
        "a workspace from a dot directory",
        'echo x >"$H/.ws/deep/main/n" && ! echo x >n',
        GAIN,
        workspace="u/home/.ws/deep/main",
        cwd="u/home/.ws/deep",
    ),
    Way("a workspace in a directory of work", "echo x >notes", GAIN, workspace="u/home/projects"),
]
WAYS = {way.name: way for way in (*READ, *PROCESSES, *SPOILS, *PROGRAMS, *RIGHTS, *HOMELY)}
