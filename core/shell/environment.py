"""Environment names that change what a program does: for assignments, `env` operands and requests."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from core.model.command import Segment
from core.shell.word_list import word_list

NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_EXACT: Final = word_list(
    """
    PATH BASH_ENV ENV IFS SHELLOPTS BASHOPTS CDPATH GLOBIGNORE PROMPT_COMMAND HOME SHELL EDITOR
    VISUAL PAGER BROWSER MANPAGER MANOPT LESSOPEN LESSCLOSE LESS LESSEDIT LESSKEY LESSKEYIN
    NODE_OPTIONS NODE_PATH MAKEFLAGS MFLAGS MAKEFILES MAKESHELL GNUMAKEFLAGS RUSTC_WRAPPER
    RUSTC_WORKSPACE_WRAPPER RUSTC RUSTFLAGS GOFLAGS GOTOOLCHAIN GOPROXY CC CXX CPP LD AR AS CFLAGS
    CXXFLAGS LDFLAGS CPPFLAGS JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS CLASSPATH MAVEN_OPTS
    GRADLE_OPTS SBT_OPTS KUBECONFIG KUBE_EDITOR DOCKER_HOST DOCKER_CONFIG SSH_ASKPASS SUDO_ASKPASS
    SSH_AUTH_SOCK TAR_OPTIONS RIPGREP_CONFIG_PATH GREP_OPTIONS GZIP XZ_OPT XZ_DEFAULTS ZIPOPT UNZIP
    FZF_DEFAULT_COMMAND FZF_DEFAULT_OPTS BAT_PAGER GCONV_PATH LOCPATH NLSPATH HOSTALIASES
    RES_OPTIONS LOCALDOMAIN RESOLV_HOST_CONF MALLOC_TRACE TERMINFO TERMCAP TERMINFO_DIRS INPUTRC
    HISTFILE EXECIGNORE FIGNORE FCEDIT FPATH ZDOTDIR POSIXLY_CORRECT LUA_INIT LUA_PATH LUA_CPATH
    PHPRC PHP_INI_SCAN_DIR TCLLIBPATH AWKPATH AWKLIBPATH ERL_AFLAGS ERL_FLAGS ELIXIR_ERL_OPTIONS
    R_PROFILE R_ENVIRON R_PROFILE_USER R_ENVIRON_USER JULIA_LOAD_PATH OPENSSL_CONF OPENSSL_MODULES
    OPENSSL_ENGINES PSQLRC PGSERVICEFILE MYSQL_HOME HTTP_PROXY HTTPS_PROXY ALL_PROXY http_proxy
    https_proxy all_proxy CURL_HOME WGETRC SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE
    CURL_CA_BUNDLE XDG_CONFIG_HOME XDG_CONFIG_DIRS XDG_DATA_HOME XDG_DATA_DIRS EMACSLOADPATH VIMINIT
    EXINIT VIM VIMRUNTIME MYVIMRC GNUPGHOME HGRCPATH SVN_EDITOR SVN_SSH RSYNC_RSH RSYNC_CONNECT_PROG
    CVS_RSH PS0 PS1 PS2 PS4 BASH_LOADABLES_PATH BASH_XTRACEFD TMPDIR VIRTUAL_ENV COMPOSER_HOME
    DBUS_SESSION_BUS_ADDRESS DBUS_SYSTEM_BUS_ADDRESS DISPLAY WAYLAND_DISPLAY XAUTHORITY
    DEBUGINFOD_URLS _ OLDPWD PWD UID EUID NODE_REPL_EXTERNAL_MODULE NODE_EXTRA_CA_CERTS NODE_V8_COVERAGE
    GOROOT GOPATH GOENV GOBIN GOCACHE GOMODCACHE GOWORK GOSUMDB GONOSUMDB GOPRIVATE GOINSECURE
    GOEXPERIMENT PKG_CONFIG TEXINPUTS TEXMFCNF TEXMFHOME KPSE_DOT DEBUGGER JAVA_HOME ANT_HOME
    MAVEN_HOME NO_PROXY no_proxy MANPATH MAIL MAILPATH MAILCHECK HISTCONTROL FUNCNEST COMP_WORDBREAKS
    RANDOM SRANDOM OPTIND OPTERR OPTARG HISTCMD SECONDS LINENO EPOCHSECONDS EPOCHREALTIME REPLY HISTSIZE
    HISTFILESIZE HISTTIMEFORMAT TMOUT IGNOREEOF CHILD_MAX PPID DIRSTACK FUNCNAME GROUPS
    PIPESTATUS
    """
)
_PREFIXES: Final = (
    "LD_", "DYLD_", "PYTHON", "PERL", "RUBY", "GEM_", "BUNDLE_", "GIT_", "NPM_", "npm_", "YARN_", "BASH",
    "CARGO_", "PIP_", "UV_", "CONDA_", "SAYSO_", "GLIBC_", "LC_ALL_", "ANSIBLE_", "TF_", "AWS_", "SYSTEMD_",
    "CMAKE_", "CTEST_", "MESON_", "PKG_CONFIG_", "RUSTUP_", "PYENV_", "RBENV_", "NVM_", "VOLTA_", "ASDF_",
    "MISE_", "DIRENV_", "COREPACK_", "ELECTRON_", "TS_NODE_", "BABEL_", "ESLINT_", "PLAYWRIGHT_",
    "DOCKER_", "BUILDKIT_", "COMPOSE_", "HELM_", "KUBE", "PUPPETEER_", "VAGRANT_", "LUA_", "PHP_", "R_",
    "QEMU_", "WINE",
    "COMP_", "READLINE_",
    "GTK_", "GDK_", "QT_", "GIO_", "GST_", "DOTNET_", "CORECLR_", "COMPLUS_", "DENO_", "BUN_", "MAGICK_",
    "OPENSSL_",
)  # fmt: skip
_SUFFIXES: Final = (
    "_PRELOAD",
    "_PAGER",
    "_EDITOR",
    "_OPTIONS",
    "_OPTS",
    "_WRAPPER",
    "_ASKPASS",
    "_RSH",
    "_SSH",
    "_COMMAND",
    "_CMD",
    "_SHELL",
    "_LIBRARY_PATH",
)
# Language, time zone and looks: no program takes from these what it runs.
_LOOKS: Final = re.compile(
    r"LANG|LANGUAGE|LC_[A-Z]+|TZ|TERM|COLUMNS|LINES|CI|NO_COLOR|FORCE_COLOR|CLICOLOR(?:_FORCE)?"
)
_LOOKS_LIKE: Final = re.compile(r"[A-Za-z0-9_.:@+-]*")
# What cannot be taken for an expression: bash evaluates what some variables are set to, subscripts too.
_PLAIN_VALUE: Final = re.compile(r"[A-Za-z0-9_./:@%+,= -]*")
_SUBSTITUTES: Final = re.compile(r"[$`]")


def searches_elsewhere(segment: Segment, env: Sequence[tuple[str, str]]) -> bool:
    """Tell whether the name of a program would be looked for on another PATH than ours."""
    if "/" in segment.words[0].value:
        return False
    own = (*segment.assignments, *segment.assigned_before)
    cleared = any(
        word.value[:1] == "-" for each in segment.wrappers if each.name == "env" for word in each.words
    )
    return cleared or "PATH" in {name for name, _ in (*env, *own)}


def plain(value: str) -> bool:
    """Tell whether a value can be assigned in a shell without being evaluated, whatever the name is."""
    return _PLAIN_VALUE.fullmatch(value) is not None


def substitutes(value: str) -> bool:
    """Tell whether a value would run a command, were a shell to evaluate it."""
    return _SUBSTITUTES.search(value) is not None


def dangerous(name: str) -> bool:
    """Tell whether setting this name can change what runs; what is no plain name at all can."""
    return (
        NAME.fullmatch(name) is None
        or name in _EXACT
        or name.startswith(_PREFIXES)
        or name.endswith(_SUFFIXES)
    )


def only_looks(name: str, value: str) -> bool:
    """Tell whether it sets but language, time zone or looks, from which no program takes what it runs."""
    return _LOOKS.fullmatch(name) is not None and _LOOKS_LIKE.fullmatch(value) is not None
