"""Programs by what they can do beyond their name. Names are compared after `core.shell.names`.

`apt-*` stands for every name that begins so.
"""

from __future__ import annotations

from typing import Final

from core.shell.builtins import CARRYING as CARRYING_BUILTINS
from core.shell.word_list import word_list

PRIVILEGE_CHANGERS: Final = word_list(
    """
    sudo sudoedit doas pkexec su runuser setpriv unshare chroot nsenter capsh newgrp sg gosu su-exec
    run0 machinectl setuidgid chpst start-stop-daemon please calife super kdesu gksu gksudo fakeroot
    fakechroot fakeroot-* bwrap firejail userdbctl systemd-run newuidmap newgidmap
    """
)

WRAPPERS: Final = word_list("env nice timeout nohup stdbuf ionice")

SHELLS: Final = word_list(
    """
    sh bash dash zsh fish ksh ksh93 mksh lksh pdksh rksh rbash tcsh csh ash yash posh rc es elvish
    nu xonsh
    """
)

POSIX_SHELLS: Final = frozenset(("sh", "bash", "dash"))

# Run another command that is among their arguments or input; also as files, as `/usr/bin/command`.
CARRIERS: Final = (
    WRAPPERS
    | CARRYING_BUILTINS
    | word_list(
        """
    proot faketime faketimeMT apptainer singularity run-singularity distrobox distrobox-* toolbox schroot
    dchroot nsjail minijail0 udocker ch-run rootlesskit setlock envuidgid execlineb s6-* with-contenv
    eatmydata run-one run-this-one keep-one-running
    xargs parallel watch time ssh sshpass autossh slogin rsh mosh dbclient chrt taskset setarch
    linux32 linux64 i386 x86_64 uname26 numactl flock script scriptreplay strace ltrace perf gdb
    gdbserver valgrind rlwrap unbuffer setsid cpulimit prlimit catchsegv dbus-run-session
    dbus-launch xvfb-run entr inotifywait incron at batch crontab busybox toybox coreutils tmux
    screen expect socat nc ncat netcat tsocks torify torsocks proxychains proxychains4 choom
    systemd-inhibit systemd-nspawn run-parts pee ifne chronic sem daemon daemonize nq ts hyperfine
    multitime logsave bash-static uftrace rr cgexec cgroup-run aa-exec runcon sandbox seunshare fd
    fdfind with-lock-ex lckdo softlimit envdir env_parallel dtach abduco reptyr nohup.sh xdg-open
    open run-mailcap sensible-browser sensible-editor sensible-pager i3-msg swaymsg xdotool
    x-terminal-emulator xterm ld.so ld-linux.so ld-linux-x86-64.so ld-linux-aarch64.so
    ld-musl-x86_64.so sotruss memusage msgexec pg_virtualenv gprofng gp-collect-app systemd-cat
    systemd-socket-activate uclampset luit not zutty jexec scriptlive
    fstab-decode switch_root ccache sccache distcc watchexec direnv mise sops tini dumb-init catatonit mispipe
    mpirun mpiexec orterun srun salloc gtk-launch lldb dlv qemu-x86_64 qemu-i386 qemu-aarch64 qemu-arm
    qemu-riscv64 qemu-ppc64le qemu-s390x qemu-x86_64-static qemu-i386-static qemu-aarch64-static
    qemu-arm-static qemu-riscv64-static qemu-ppc64le-static qemu-s390x-static
    """
    )
)

PACKAGE_RUNNERS: Final = word_list(
    """
    npx bunx pnpx uvx pipx yarn-dlx npm-exec corepack dlx nix-shell nix-run guix-shell pkgx
    """
)

INTERPRETERS: Final = word_list(
    """
    python pypy ipython micropython perl ruby jruby irb node nodejs deno bun php php-cgi lua luajit
    tclsh wish expect guile racket scheme sbcl clisp ecl emacs-lisp rscript R julia octave java
    jshell scala groovy kotlin kotlinc clojure elixir iex erl escript ghci runghc runhaskell ocaml
    swift dart raku rakudo perl6 osascript pwsh powershell gjs qjs d8 jjs coffee ts-node tsx js gosh
    chez mit-scheme gforth awk gawk mawk nawk original-awk sed gsed ed red m4 dc bc pdksh gnuplot
    maxima gap sage
    """
)

# Can be made to run, load or write anything by ordinary arguments, configuration or input files.
RUNS_ANYTHING: Final = (
    INTERPRETERS
    | SHELLS
    | PACKAGE_RUNNERS
    | word_list(
        """
    npm pnpm yarn pip easy_install uv poetry pipenv conda mamba micromamba gem bundle bundler rake
    cargo rustup go composer apt apt-get aptitude dpkg dpkg-reconfigure rpm yum dnf zypper pacman
    apk emerge snap flatpak brew port nix nix-env nix-build nix-store guix make gmake bmake cmake
    ctest ninja meson scons bazel bazelisk buck ant mvn gradle gradlew mvnw sbt lein mix rebar
    rebar3 tox nox pytest invoke fab just task mage earthly waf autoconf automake autoreconf libtool
    configure dpkg-buildpackage debuild git git-shell gitk tig lazygit gh glab hub hg svn bzr cvs
    fossil jj repo docker podman nerdctl buildah ctr crictl runc crun lxc lxc-exec incus kubectl oc
    helm k9s kustomize minikube kind terraform tofu terragrunt pulumi ansible ansible-playbook
    ansible-console salt salt-call puppet chef-client vagrant packer aws gcloud az doctl fly heroku
    vercel netlify wrangler serverless scp sftp rsync rclone lftp ftp tftp telnet curl wget aria2c
    axel http https xh vi view vim nvim vimdiff rvim rview ex gvim emacs emacsclient nano pico micro
    joe jed mg kak helix hx code codium subl less lesspipe lessfile lessopen more most man info
    pinfo bat batcat pg cc c89 c99 gcc g++ c++ clang clang++ cpp tcc as ld gold lld gfortran gnat
    rustc javac zig nasm yasm ldconfig ldd ar tar bsdtar gtar star cpio pax zip unzip 7z 7za 7zr 7zz
    rar unrar ar-static sqlite psql mysql mysqldump mariadb mongo mongosh redis-cli mysqladmin
    pg_dump pg_restore sqlplus clickhouse duckdb isql sqlcmd usql pgcli mycli litecli systemctl
    service rc-service initctl journalctl loginctl hostnamectl coredumpctl busctl dbus-send gdbus
    mount umount fusermount losetup dmsetup cryptsetup mkfs fsck insmod modprobe rmmod kmod sysctl
    iptables ip6tables nft ipset tc ufw firewall-cmd tcpdump tshark wireshark nmap ettercap aireplay
    hping hping3 openssl gpg gpg2 age ssh-agent ssh-keygen ssh-add ssh-copy-id sshfs aspell hunspell
    latex pdflatex xelatex lualatex tex luatex pdftex bibtex latexmk context dvips gs ghostscript
    convert magick mogrify identify montage composite ffmpeg ffprobe mpv mplayer vlc pandoc
    wkhtmltopdf groff troff nroff pdfroff tbl pic pygmentize mail mailx mutt neomutt sendmail exim
    postfix procmail fetchmail msmtp irssi weechat w3m lynx links elinks firefox chromium
    chromium-browser google-chrome chrome playwright electron zenity dialog whiptail fzf sk peco
    dmenu rofi ranger nnn mc vifm lf top htop btop atop iotop bpftrace bpftool perf trace-cmd dtrace
    stap scanmem gcore easyrsa openvpn openvt restic borg duplicity rdiff-backup nginx apache2 httpd
    caddy uwsgi gunicorn uvicorn flask django-admin celery logrotate cron crond anacron
    update-alternatives update-rc.d useradd usermod groupadd passwd chsh chfn visudo vipw vigr dd
    tee patch ctags cscope sphinx-build mkdocs jekyll hugo eslint prettier webpack vite rollup
    esbuild tsc jest vitest mocha karma grunt gulp nx turbo lerna ng next nuxt astro rails rspec
    rubocop phpunit artisan laravel drush wp pylint mypy black isort ruff flake8 pre-commit
    cookiecutter copier jupyter papermill streamlit claude codex aider goose gemini ollama llm
    openclaw sayso dosbox wine qemu qemu-system virsh virt-install vboxmanage snapcraft dmesg cobc
    cupsfilter dvdisplay gimp inkscape blender libreoffice soffice scribus rlogin finger whois
    ntpdate hwclock cordova expo adb fastboot flutter zsoelim varnishncsa tic posh wall write
    msgattrib msgcat msgconv msgfilter msgmerge msguniq pkg plymouth setfacl setcap xmodmap xpad
    xz-lzma neofetch fastfetch genisoimage mkisofs mksquashfs unsquashfs rpmquery rpmdb rpmverify
    run-parts vim.basic vim.tiny vim.nox vim.gtk3 nano.tiny bsdcat ip
    apt-* dpkg-* git-* gcc-* c89-gcc c99-gcc llvm-* systemd-* systemd docker-* kubectl-* cargo-* npm-*
    gpg-* gpgconf gpgsm gpgtar gpgcompose dirmngr dirmngr-* gp-* prove pydoc pdb diff3 sdiff nm ranlib
    strip objcopy objdump size addr2line gcc-ar gcc-nm gcc-ranlib lto-dump lli cpack etags
    ctags-universal optscript pkgdata rpcgen scalar dbus-daemon udevadm xrdb iconv localedef login
    tset reset obj2yaml yaml2obj FileCheck readprofile mke2fs e2fsck debugfs tune2fs resize2fs e2image e2undo
    dumpe2fs badblocks e4defrag e2scrub agetty slattach rtcwake gpgparsemail dwp heaptrack_print tput zic
    sprof
    jar javap jps jdb jrunscript jlink jpackage jdeps jarsigner jcmd keytool javadoc rmiregistry opt llc
    bugpoint gio gio-querymodules gdk-pixbuf-query-loaders gdk-pixbuf-thumbnailer osslsigncode kpt pg_ctl
    postgres initdb pg_upgrade pgbench collect2 lto-wrapper ssh-pkcs11-helper clang-tidy protoc doxygen sox
    mlr etcdctl vault swipl gp ghc dune redis-server pkcs11-tool p11tool modutil mono dotnet mold qemu-*
    """
    )
)

# Whatever their arguments, variables and input files, these run no other program and load no other code. What
# of them does is in CARRYING_OPTIONS. It holds whole names, and what is not certain is not in it.
LOADS_NOTHING: Final = word_list(
    """
    ls dir vdir cat head tail wc cut tr sort uniq nl tac paste join comm fold fmt pr expand unexpand od split
    csplit shuf tsort base32 base64 basenc sum cksum b2sum md5sum sha1sum sha224sum sha256sum sha384sum
    sha512sum stat du df dirname basename realpath readlink pathchk pwd echo printf true false test [ expr
    seq factor numfmt sleep date touch mkdir rmdir rm cp mv ln link unlink install chmod chown chgrp truncate
    mktemp shred sync whoami id groups logname users uname arch nproc hostid hostname uptime tty who printenv
    yes grep egrep fgrep rg find diff cmp jq tree file ps free pgrep xxd hexdump column rev which gzip
    gunzip zcat bzip2 bunzip2 bzcat xz unxz xzcat lzma unlzma lzcat zstd unzstd
    zstdcat ping
    """
)

# Package managers that can fetch and run a package: the words that make them do it.
FETCHING_VERBS: Final[dict[str, frozenset[str]]] = {
    "npm": word_list("exec x init create innit"),
    "pnpm": word_list("exec dlx create"),
    "yarn": word_list("exec dlx create"),
    "bun": word_list("x create"),
    "uv": word_list("tool"),
    "deno": word_list("x"),
    "cargo": word_list("binstall"),
}

# Whatever their arguments, these write no file.
ONLY_READ: Final = word_list("cat head tail grep egrep fgrep wc cut tr ls basename dirname sleep")

# Whatever their arguments, these only read and tell, so that "always" may admit any command of theirs.
READS: Final = word_list(
    """
    basename cat cksum cmp comm cut b2sum df dirname du egrep expand fgrep fold free grep groups head id join
    ls md5sum nl nproc od paste pathchk printenv ps pwd readlink realpath sha1sum sha224sum sha256sum
    sha384sum sha512sum stat sum tac tail tr tty uname unexpand uptime users wc which who whoami
    """
)

MULTI_CALL: Final = frozenset(("busybox", "toybox", "coreutils"))

# Options by which an ordinary program runs, or loads, something else.
CARRYING_OPTIONS: Final[dict[str, frozenset[str]]] = {
    "find": frozenset(("-exec", "-execdir", "-ok", "-okdir")),
    "rg": frozenset(("--pre", "--hostname-bin", "--search-zip", "-z")),
    "sort": frozenset(("--compress-program",)),
    "split": frozenset(("--filter",)),
    "ack": frozenset(("--pager", "--ackrc", "--output")),
    "install": frozenset(("--strip-program", "-s", "--strip")),
    "diff": frozenset(("-l", "--paginate")),
    "file": frozenset(("-z", "-Z", "--uncompress", "--uncompress-noreport")),
    "tree": frozenset(("-R",)),
}

# Options by which one reads files that another file, or its input, names.
LISTING_OPTIONS: Final[dict[str, frozenset[str]]] = {
    **dict.fromkeys(("sort", "wc", "du"), frozenset(("--files0-from",))),
    "find": frozenset(("-files0-from",)),
    "file": frozenset(("-f", "--files-from")),
    **dict.fromkeys(("tar", "bsdtar", "gtar", "star"), frozenset(("-T", "--files-from"))),
    "rsync": frozenset(("--files-from",)),
}
