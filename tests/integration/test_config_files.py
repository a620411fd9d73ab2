"""Real files on disk ▶ configuration, or one error that tells everything that is wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bot.config import NOT_ENFORCED_YET, LoadedConfig, Overrides, load
from core.config import AskMode, Config, ExecSecurity, ProfileName, SandboxMode
from core.errors import ConfigError

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def put(text: str, name: str = "c.yaml") -> Path:
        path = tmp_path / name
        path.write_text(text, "utf-8")
        return path

    return put


@pytest.fixture
def read(write: Write) -> Callable[..., LoadedConfig]:
    return lambda text, **env: load([write(text)], env=env)


@pytest.fixture
def refusal(write: Write, tmp_path: Path) -> Callable[..., list[str]]:
    """Return the lines of the error, with the folder taken off."""

    def refused(text: str, **env: str) -> list[str]:
        with pytest.raises(ConfigError) as error:
            load([write(text)], env=env)
        return str(error.value).replace(f"{tmp_path}/", "").splitlines()

    return refused


Read = Callable[..., LoadedConfig]
Refusal = Callable[..., list[str]]


class TestWhatIsRead:
    @pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "tools:\n", "{}", "\ufeffagents:\n"])
    def test_an_empty_file_is_the_defaults(self, read: Read, text: str) -> None:
        assert read(text).config == Config()

    def test_both_spellings_of_keys(self, read: Read) -> None:
        config = read("tools:\n  also_allow: [tts]\n  webFetch: {follow_redirects: false}\n").config
        assert config.tools.also_allow == ("tts",)
        assert config.tools.web_fetch.follow_redirects is False

    def test_words_that_older_yaml_takes_for_booleans(self, read: Read) -> None:
        config = read("tools: {exec: {ask: off}, browser: {enabled: no}}\nsandboxing: {mode: off}\n").config
        assert config.exec.ask is AskMode.OFF
        assert config.sandboxing.mode is SandboxMode.OFF
        assert config.tools.browser.enabled is False

    @pytest.mark.parametrize("written", ["yes", "true", "'${ON}'"])
    def test_booleans_are_words_without_quotes_or_of_a_variable(self, read: Read, written: str) -> None:
        assert read(f"sandboxing: {{network: {written}}}\n", ON="yes").config.sandboxing.network is True

    @pytest.mark.parametrize("written", ["", "null"])
    def test_a_path_written_as_nothing_takes_back_what_was_named_before(
        self, write: Write, written: str
    ) -> None:
        first = write("agents: {main: {workspace: /srv}}\n", "a.yaml")
        second = write(f"agents: {{main: {{workspace: {written}}}}}\n", "b.yaml")
        assert load([first, second], env={}).config.agent("main").workspace is None

    def test_anchors_and_merge_keys(self, read: Read) -> None:
        text = """
agents:
  one: &one
    owner: true
    tools: {deny: [exec]}
  two:
    <<: *one
    owner: false
"""
        agents = read(text).config.agents.by_id
        assert agents["one"].tools == agents["two"].tools
        assert (agents["one"].owner, agents["two"].owner) == (True, False)

    def test_an_agent_with_nothing_below_it_exists(self, read: Read) -> None:
        assert read("agents:\n  helper:\n").config.agents.by_id.keys() == {"helper"}

    def test_later_files_lie_over_earlier_ones(self, write: Write, tmp_path: Path) -> None:
        first = write("tools:\n  deny: [exec]\n  exec: {ask: always, security: allowlist}\n", "a.yaml")
        second = write("tools:\n  deny: [read]\n  exec:\n    ask: off\n", "b.yaml")
        loaded = load([first, second], env={})
        assert loaded.config.tools.deny == ("read",)
        assert (loaded.config.exec.ask, loaded.config.exec.security) == (AskMode.OFF, ExecSecurity.ALLOWLIST)
        assert loaded.where("tools.exec.ask") == f"{second}:4"
        assert loaded.where("tools.exec.security") == f"{first}:3"
        assert loaded.protected_paths == (str(tmp_path / "a.yaml"), str(tmp_path / "b.yaml"))

    def test_synonyms_meet_across_files(self, write: Write) -> None:
        first = write("agents: {main: {tools: {profile: full}}}\n", "a.yaml")
        second = write("agents: {list: [{id: main, profile: coding}]}\n", "b.yaml")
        assert load([first, second], env={}).config.agent("main").tools.profile is ProfileName.CODING

    def test_flags_lie_over_files_for_every_agent(self, write: Write) -> None:
        path = write("agents: {main: {exec: {security: full, ask: off}, sandbox: {enabled: true}}}\n")
        config = load([path], env={}, overrides=Overrides(exec_security="deny", no_sandbox=True)).config
        assert config.agent("main").exec.security is ExecSecurity.DENY
        assert config.agent("main").exec.ask is AskMode.OFF
        assert config.agent("main").sandbox.enabled is False


class TestWhere:
    TEXT = "tools:\n  byProvider:\n    acme/m-1.5:\n      deny:\n        - exec\n        - read\nlog: {}\n"

    @pytest.mark.parametrize(
        ("path", "line"),
        [
            ("tools", 1),
            ("tools.byProvider.acme/m-1.5.deny[1]", 6),
            ("tools.byProvider.acme/m-1.5.deny[7]", 4),
            ("tools.byProvider.acme/m-1.5.allow", 3),
            ("tools.exec.security", 1),
            ("log.level", 7),
            ("approvals.exec", None),
        ],
    )
    def test_it_names_the_key_or_the_nearest_around_it(self, read: Read, path: str, line: int | None) -> None:
        found = read(self.TEXT).where(path)
        assert (found.rpartition(":")[2] if found else None) == (str(line) if line else None)

    def test_exactly_there_or_nowhere(self, read: Read) -> None:
        loaded = read(self.TEXT)
        assert loaded.where("tools.exec.security", exact=True) is None
        assert str(loaded.where("tools.byProvider", exact=True)).endswith(":2")


class TestSynonyms:
    def test_each_is_folded_into_its_place(self, read: Read) -> None:
        config = read("""
sandbox: {mode: non-main}
providers:
  - id: acme
    tools: {deny: [exec]}
agents:
  main:
    profile: coding
    tools: {exec: {ask: always}}
    sandbox: {also_allow: [web_search], docker: {image: ubuntu}}
  list:
    - id: helper
      profile: minimal
""").config
        assert config.sandboxing.mode is SandboxMode.NON_MAIN
        assert config.tools.by_provider["acme"].deny == ("exec",)
        main = config.agent("main")
        assert main.tools.profile is ProfileName.CODING
        assert main.exec.ask is AskMode.ALWAYS
        assert main.tools.sandbox is not None
        assert main.tools.sandbox.tools.also_allow == ("web_search",)
        assert main.sandbox.docker is not None
        assert config.agent("helper").tools.profile is ProfileName.MINIMAL

    def test_the_same_value_twice_is_no_contradiction(self, read: Read) -> None:
        text = "agents:\n  main: {profile: coding, tools: {profile: coding}}\n"
        assert read(text).config.agent("main").tools.profile is ProfileName.CODING

    @pytest.mark.parametrize(
        "text",
        [
            "agents:\n  main:\n    profile: full\n    tools:\n      profile: coding\n",
            "sandbox:\n  mode: off\n\nsandboxing:\n  mode: all\n",
            "agents:\n  main: {owner: true}\n  list:\n    - id: main\n      owner: false\n",
        ],
    )
    def test_different_values_name_both_lines(self, refusal: Refusal, text: str) -> None:
        (line,) = refusal(text)
        assert "two places with different values (lines " in line

    @pytest.mark.parametrize(
        "text", ["agents: {list: [x]}", "agents: {list: 3}", "agents: {list: [{id: 5}]}"]
    )
    def test_a_list_needs_ids(self, refusal: Refusal, text: str) -> None:
        assert "agents.list" in refusal(text)[0]


class TestWhatIsRefused:
    @pytest.mark.parametrize(
        ("text", "line"),
        [
            ("tools:\n  proflie: full\n", "c.yaml:2: tools.proflie: is no known key; did you mean profile?"),
            (
                "tools:\n  profile: ful\n",
                "c.yaml:2: tools.profile: 'ful' must be one of full, coding, messaging, minimal",
            ),
            ("tools: {deny: exec}\n", "c.yaml:1: tools.deny: 'exec' must be a list"),
            ("tools: [x]\n", "c.yaml:1: tools: must be a mapping (key: value), not a list"),
            (
                "tools:\n  exec:\n    timeoutSeconds: soon\n",
                "c.yaml:3: tools.exec.timeoutSeconds: 'soon' must be a number",
            ),
            ("channels: {web: {port: 99999}}\n", "c.yaml:1: channels.web.port: 99999 must be at most 65535"),
            (
                "approvals: {exec: {approvers: [12]}}\n",
                "c.yaml:1: approvals.exec.approvers[0]: 12 must be text",
            ),
            ("agents:\n  Main: {}\n", "c.yaml:2: agents.Main: is no valid agent id"),
            ("log:\n  level: info\nlog: {}\n", "c.yaml:3: log: is written twice (first in line 1)"),
            (
                "tools:\n  also_allow: []\n  alsoAllow: []\n",
                "c.yaml:3: tools.alsoAllow: is the same key as also_allow (c.yaml:2)",
            ),
            ("sandboxing: {masked: [x]}\n", "c.yaml:1: sandboxing.masked[0]: 'x' must be an absolute path"),
            (
                "tools: {exec: {allowlist: [{pattern: /x, args: [], argPattern: x}]}}\n",
                "c.yaml:1: tools.exec.allowlist[0]: args and argPattern exclude each other",
            ),
            (
                "tools: {exec: {allowlist: [{pattern: /x, argPattern: '('}]}}\n",
                "c.yaml:1: tools.exec.allowlist[0].argPattern: '(' is no RE2 expression",
            ),
            ("tools: {allow: [my-tool]}\n", "c.yaml:1: tools.allow: names no known tool or group"),
            (
                "agents: {defaults: {elevatedDefault: full}}\n",
                "c.yaml:1: agents.defaults.elevatedDefault: 'full' must be",
            ),
            ("channels: {slack: {botToken: x}}\n", "c.yaml:1: channels.slack.appToken: is missing; add it"),
            ("tools: !!python/object:os.system {}\n", "c.yaml:1: tools: the tag"),
            (
                "tools:\n\t- x\n",
                "c.yaml:2: is no valid YAML: line 2 begins with a tab; indent with blanks",
            ),
            ("tools: {\n  deny: [a]\n", "c.yaml:3: is no valid YAML: the { of line 1 is not closed"),
            (
                "tools: {\n  a: 1\nlog: x\n",
                "c.yaml:3: is no valid YAML: the { of line 1 is not closed, or a co",
            ),
            ("tools: [a,\n", "c.yaml:2: is no valid YAML: it ends in line 2 before a { or [ is closed"),
            ("a: 'x\n", "c.yaml:2: is no valid YAML: the quote of line 1 is not closed"),
            ("a:\n  b:\n    c: 1\n   d: 1\n", "c.yaml:4: is no valid YAML: line 4 is indented otherwise"),
            (
                "agents: {main: {workspace: ~}}\n",
                "c.yaml:1: agents.main.workspace: nothing would be set: YAML reads ~ alone as nothing",
            ),
            ("sandboxing: {readable: [/a, ~]}\n", "c.yaml:1: sandboxing.readable[1]: nothing would be set"),
            (
                'sandboxing: {network: "yes"}\n',
                "c.yaml:1: sandboxing.network: 'yes' is text; write true or false, without quotes",
            ),
            ("agents: {main: {owner: 'no'}}\n", "c.yaml:1: agents.main.owner: 'no' is text"),
            (
                "tools: {exec: {hostUser: 0}}\n",
                "c.yaml:1: tools.exec.hostUser: 0 must be an account's name, not a uid; uid 0 is root",
            ),
            (
                "sandboxing: {user: '77777'}\n",
                "c.yaml:1: sandboxing.user: '77777' must be an account's name, not a uid; uid 77777 has no",
            ),
            ("a: *nowhere\n", "c.yaml:1: is no valid YAML"),
            ("tools: &t\n  x: *t\n", "c.yaml:2: tools.x: aliases repeat"),
            ("x", "c.yaml:1: must be a mapping"),
            ("--- \na: 1\n---\nb: 2\n", "c.yaml:3: is no valid YAML"),
        ],
    )
    def test_it_names_line_key_value_and_rule(self, refusal: Refusal, text: str, line: str) -> None:
        assert refusal(text)[0].startswith(line)

    def test_everything_wrong_is_told_at_once_in_the_order_of_the_file(self, refusal: Refusal) -> None:
        lines = refusal("log: {level: loud}\ntools:\n  profile: ful\n  exec: {ask: x}\nnonsense: 1\n")
        assert [line.split(":")[1] for line in lines] == ["1", "3", "4", "5"]

    def test_files_that_cannot_be_read_are_named(self, tmp_path: Path) -> None:
        (tmp_path / "latin.yaml").write_bytes(b"log: \xff\n")
        for path, words in [
            (tmp_path, "is a directory"),
            (tmp_path / "no", "no such file"),
            (tmp_path / "latin.yaml", "UTF-8"),
        ]:
            with pytest.raises(ConfigError, match=words):
                load([path], env={})

    def test_a_file_that_the_system_refuses_to_read_is_named(self) -> None:
        with pytest.raises(ConfigError, match=r"^/proc/self/mem: cannot be read: "):
            load([Path("/proc/self/mem")], env={})

    def test_a_bomb_of_aliases_is_refused(self, refusal: Refusal) -> None:
        text = "a0: &a0 [x, x]\n" + "".join(
            f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 9)
        )
        assert "aliases repeat" in refusal(text)[0]


class TestVariablesAndSecrets:
    def test_variables_stand_for_their_values(self, read: Read) -> None:
        config = read("tools: {deny: ['${T}ec', '$${T}', '$T']}\n", T="ex").config
        assert config.tools.deny == ("exec", "${T}", "$T")

    def test_a_missing_variable_is_named(self, refusal: Refusal) -> None:
        (line,) = refusal("channels:\n  telegram:\n    token: ${NOT_THERE}\n")
        assert line.startswith("c.yaml:3: channels.telegram.token: needs the environment variable NOT_THERE")

    @pytest.mark.parametrize("text", ["'${'", "'${a b}'", "'${}'"])
    def test_a_broken_variable_is_explained(self, refusal: Refusal, text: str) -> None:
        assert "write $${" in refusal(f"tools: {{deny: [{text}]}}\n")[0]

    def test_a_secret_file_is_read_and_protected(self, read: Read, tmp_path: Path) -> None:
        token = tmp_path / "token"
        token.write_text("abc123\n")
        token.chmod(0o600)
        loaded = read(f"channels: {{telegram: {{token: 'file:{token}'}}}}\n")
        assert loaded.config.channels.telegram is not None
        assert loaded.config.channels.telegram.token.get_secret_value() == "abc123"
        assert loaded.secrets == ("abc123",)
        assert str(token) in loaded.protected_paths

    @pytest.mark.parametrize(("mode", "content", "words"), [(0o644, "x", "chmod"), (0o600, "\n", "is empty")])
    def test_a_bad_secret_file_is_refused(
        self, refusal: Refusal, tmp_path: Path, mode: int, content: str, words: str
    ) -> None:
        token = tmp_path / "token"
        token.write_text(content)
        token.chmod(mode)
        (line,) = refusal(f"channels: {{telegram: {{token: 'file:{token}'}}}}\n")
        assert words in line

    @pytest.mark.parametrize("name", ["relative", "/nonexistent/token", "/dev/null", "/"])
    def test_a_secret_file_must_be_a_plain_one(self, refusal: Refusal, name: str) -> None:
        assert "names the secret file" in refusal(f"channels: {{telegram: {{token: 'file:{name}'}}}}\n")[0]

    def test_only_secrets_come_from_files(self, read: Read) -> None:
        assert read("tools: {deny: ['file:/etc/passwd']}\n").config.tools.deny == ("file:/etc/passwd",)

    @pytest.mark.parametrize(
        "text",
        [
            "channels: {telegram: hunter2}\n",
            "channels: {telegram: {token: {a: hunter2}}}\n",
            "channels: {telegram: {token: [hunter2]}}\n",
            "channels: {telegram: {tokn: hunter2}}\n",
            "channels: {telegram: {token: hunter2, enabled: maybe}}\n",
            "channels: {slack: {botToken: hunter2}}\n",
            "channels: {telegram: {token: 'hunter2}}\n",
            "channels: {telegram: {token: *hunter2}}\n",
            "channels: {telegram: {token: x, bot_token: hunter2}}\n",
        ],
    )
    def test_no_error_shows_a_secret(self, refusal: Refusal, text: str) -> None:
        assert "hunter2" not in "\n".join(refusal(text))

    def test_home_stands_for_itself_in_paths_only(self, read: Read) -> None:
        config = read(
            "sandboxing: {masked: [~/.ssh]}\ntools: {exec: {deny: ['~/x']}}\n", HOME="/home/me"
        ).config
        assert config.sandboxing.masked == ("/home/me/.ssh",)
        assert config.exec.deny == ("~/x",)


class TestWarnings:
    def test_what_is_not_enforced_yet_is_named(self, read: Read) -> None:
        text = "tools: {exec: {node: build-1}}\nagents: {main: {sandbox: {backend: docker}}}\n"
        warnings = read(text).warnings
        assert [warning.split(" is read but")[0] for warning in warnings] == [
            "tools.exec.node",
            "agents.main.sandbox.backend",
        ]

    def test_a_skill_whose_program_can_run_anything_is_pointed_out(self, read: Read) -> None:
        text = "skills: {ship: {bins: [forecast, git, /usr/bin/python3.11]}}\n"
        told = [warning.split(":")[0] for warning in read(text).warnings]
        assert told == ["skills.ship.bins[1]", "skills.ship.bins[2]"]

    def test_defaults_written_out_are_not_worth_a_warning(self, read: Read) -> None:
        assert read("tools: {read: {allow: []}, exec: {autoAllowSkills: false}}\n").warnings == ()

    @pytest.mark.parametrize(
        ("lists", "told"),
        [
            (
                "read: {allow: ['~bob/**']}",
                "tools.read.allow[0]: '~bob/**' matches nothing: only ~/ is expanded",
            ),
            ("read: {deny: [/x, '~bob/**']}", "tools.read.deny[1]: '~bob/**' counts for every path"),
            ("write: {deny: [/a/../b]}", "tools.write.deny[0]: '/a/../b' counts for every path"),
            (
                "read: {allow: ['*.{pem,key}']}",
                "tools.read.allow[0]: in '*.{pem,key}' the brackets stand for",
            ),
        ],
    )
    def test_a_path_pattern_that_means_something_else_is_told(
        self, read: Read, lists: str, told: str
    ) -> None:
        (warning,) = read(f"tools: {{{lists}}}\n").warnings
        assert warning.startswith(told)

    @pytest.mark.parametrize("key", ["read: {deny", "write: {deny", "ask: {paths"])
    @pytest.mark.parametrize("pattern", ["*.{pem,key}", "key[12]", "a]", "}"])
    def test_brackets_where_a_pattern_restricts_are_refused_with_the_way_out(
        self, read: Read, key: str, pattern: str
    ) -> None:
        with pytest.raises(ConfigError, match="write one pattern for each") as refused:
            read(f"tools: {{{key}: ['{pattern}']}}}}\n")
        assert ".yaml:1" in str(refused.value)
        read(f"tools: {{{key}: ['*.pem', '*.key', 'key?1?']}}}}\n")

    def test_a_misspelt_tool_is_worth_one(self, read: Read) -> None:
        (warning,) = read("tools: {deny: [exce]}\n").warnings
        assert warning.startswith("tools.deny[0]: 'exce' names no known tool")
        assert warning.endswith("did you mean exec?")

    @pytest.mark.parametrize("path", sorted(NOT_ENFORCED_YET))
    def test_every_path_of_the_table_exists(self, path: str) -> None:
        model = Config
        for part in path.split("."):
            if part == "*":
                model = next(iter(model.model_fields["by_id"].annotation.__args__[1:]))
                continue
            fields = {field.alias or name: field for name, field in model.model_fields.items()}
            assert part in fields
            model = next(iter(getattr(fields[part].annotation, "__args__", [])), fields[part].annotation)
