"""Filters that read only their input are admitted; the same programs reading files are not."""

from __future__ import annotations

import pytest

from tests.shell_world import World, effect, judge, look

ALL = ["cut", "uniq", "head", "tail", "tr", "wc", "jq", "grep", "sort"]

SAFE = [
    "cut -d: -f1,3",
    "cut -d ':' -f 1",
    "cut --fields=1 --delimiter ,",
    "cut --output=x -f1",
    "cut -c1-5",
    "cut -sf1",
    "cut -b1 -",
    "uniq",
    "uniq -c",
    "uniq -cd",
    "uniq -f 1 -w5",
    "uniq --count",
    "uniq --skip-f=1",
    "uniq --all-repeated=none",
    "head",
    "head -5",
    "head -n 5",
    "head -n5",
    "head -c 10",
    "head --lines=3",
    "head -",
    "head -- -",
    "head -qn1",
    "tail -n +2",
    "tail -20",
    "tail --bytes 5",
    "tail -c5",
    "tr a-z A-Z",
    "tr -d '\\n'",
    "tr / _",
    "tr -cs 'a-z' '\\n'",
    "tr -- -a b",
    "tr '$' '*'",
    "wc",
    "wc -l",
    "wc -lw",
    "wc --lines --words",
    "wc -",
    "wc --li",
    "grep -e TODO",
    "grep -ie 'a b'",
    "grep -n -e a -e b",
    "grep --regexp=x",
    "grep -A2 -e x",
    "grep -3 -e x",
    "grep --color=never -e x",
    "grep -oEe 'a.c$'",
    "grep -e x -",
    "sort",
    "sort -rn",
    "sort -k1,1",
    "sort -k 2 -t ,",
    "sort -u --reverse",
    "sort -t/ -k2",
    "jq .",
    "jq -r '.a[]'",
    "jq --arg x y '.a == $x'",
    "jq -c --indent 2 .",
    "jq --argjson n 1 '.[$n]'",
    "jq '.environment'",
    "jq '.a.imports'",
    "jq -nr '[.a]'",
    "wc -l -",
    "wc -- -",
    "tail -n+2 -",
    "sort --key=1,1 --num",
    "sort -t '$' -k2",
    "uniq -- -",
    "cut -d '*' -f1",
    "grep -e '~'",
    "grep -vc -m1 -e 'x y'",
    "grep --incl='*.c' -e x",
    "grep --after-context=2 --regex x",
]

UNSAFE = [
    "cut -f1 file",
    "cut -f1 -x",
    "cut -f",
    "cut -f1 /etc/passwd",
    "uniq in",
    "uniq in out",
    "uniq - out",
    "uniq +1",
    "uniq --wat",
    "head x",
    "head -- --unknown",
    "head -- /etc/passwd",
    "head -n",
    "head -5 x",
    "head --wat",
    "head -- -5",
    "head /etc/passwd",
    "head --lines",
    "head -n 5 ./x",
    "tail -f x",
    "tail -f",
    "tail -F x",
    "tail --pid=1",
    "tail +5",
    "tail --follow=name x",
    "tr a b c",
    "tr -x a b",
    "tr --wat a b",
    "wc x",
    "wc --files0-from=f",
    "wc --files0-from f",
    "wc --files0=f",
    "wc -l x",
    "wc --f=x",
    "wc -lx",
    "grep TODO",
    "grep pattern file.txt",
    "grep -e SECRET .env",
    "grep -n TODO src/",
    "grep -f pats",
    "grep -e a -r",
    "grep -re a",
    "grep -R -e a .",
    "grep --file=x",
    "grep --file x -e a",
    "grep -d recurse -e a",
    "grep --directories=recurse -e a",
    "grep --exclude-from=x -e a",
    "grep --dereference-recursive -e a",
    "grep",
    "grep -e",
    "grep -P -e x",
    "grep -if x -e y",
    "sort x",
    "sort -o out",
    "sort -oout",
    "sort --output=x",
    "sort --outp x",
    "sort --compress-program=sh",
    "sort --comp=sh",
    "sort --files0-from=f",
    "sort -T /tmp",
    "sort --random-source=x",
    "sort -rno x",
    "sort -S 1",
    "sort --r",
    "sort --ran",
    "grep --f=x -e a",
    "head --h",
    "sort -m a b",
    "jq env",
    "jq '.foo | env.BAR'",
    "jq env.FOO",
    "jq '$ENV.PATH'",
    "jq input_filename",
    "jq 'include \"x\"; .'",
    "jq 'import \"x\" as x; .'",
    "jq -f x",
    "jq -rf x",
    "jq --from-file x",
    "jq --rawfile a b .",
    "jq --argfile a b .",
    "jq --slurpfile a b .",
    "jq -L /x .",
    "jq . file",
    "jq --args . a",
    "jq '$__prog_args'",
    "jq '$ ENV.PATH'",
    "jq '$\n#x\nENV'",
    "jq '$ __prog_args'",
    "jq '.[$ENV]'",
    "jq '@text \"\\(env)\"'",
    "jq '. as {a: $x} | $x | env'",
    "jq modulemeta",
    "jq get_search_list",
    "jq . -- x",
    "jq --stream-errors .",
    "sort -c x",
    "sort --files0 f",
    "sort +1",
    "sort --debug",
    "sort --batch-size=2",
    "sort --parallel=9 x",
    "sort -- x",
    "uniq --group=append x",
    "uniq -f1 -- x",
    "wc -- x",
    "wc --fi=x",
    "cut -d : -f1 ./x",
    "cut -f1 -- -x",
    "head -c5 -- x",
    "head -n5 - x",
    "tail --retry x",
    "tail -s1 -f",
    "tail -5f",
    "grep -e x -- /etc/passwd",
    "grep -ex -f /etc/passwd",
    "grep --fi=x -e a",
    "grep --rec -e a",
    "grep -e a --dir=recurse",
    "grep -D read -e a",
    "grep --exclude-f=x -e a",
    "grep --regexp",
    "grep -Ee",
    "grep -X x -e a",
    "jq --ra .",
]


@pytest.mark.parametrize("line", [line for line in SAFE if line != "cut"])
def test_reading_only_its_input_is_safe(line: str) -> None:
    judgement = judge(line, ask="off", safeBins=ALL)
    assert judgement.satisfied_by == ("safe_bin",), judgement.decision.reason
    assert str(judgement.decision.effect) == "allow"


@pytest.mark.parametrize("line", [line for line in UNSAFE if line != "cut"])
def test_anything_else_is_not(line: str) -> None:
    assert effect(line, ask="off", safeBins=ALL) == "deny"


@pytest.mark.parametrize(
    "line", ["head -n $X", "tr * b", "grep -e ~", "cut -f{1,2}", "head -n 5 2>/dev/null $X"]
)
def test_values_that_are_not_literal_fail(line: str) -> None:
    assert effect(line, ask="off", safeBins=ALL) == "deny"


@pytest.mark.parametrize("line", ["grep -e x", "jq .", "sort"])
def test_what_is_not_listed_is_not_safe(line: str) -> None:
    assert effect(line, ask="off") == "deny"


@pytest.mark.parametrize(
    "name", ["awk", "sed", "python3", "bash", "xargs", "env", "sudo", "less", "tee", "git"]
)
def test_some_programs_can_never_be_made_safe(name: str) -> None:
    profile = {name: {"allowedFlags": ["-n"], "maxPositional": 2}}
    assert effect(f"{name} -n", ask="off", safeBins=[name], safeBinProfiles=profile) == "deny"


def test_a_safe_bin_must_come_from_a_trusted_directory() -> None:
    assert effect("/tmp/cut -f1", ask="off") == "deny"
    assert effect("cut -f1", ask="off", safeBinTrustedDirs=["/opt/bin"]) == "deny"
    linked = World(links={"/usr/bin/cut": "/usr/bin/python3.11"})
    assert effect(look("cut -f1", world=linked), ask="off") == "deny"


def test_a_profile_narrows_what_is_built_in() -> None:
    profile = {"jq": {"allowedValueFlags": ["--arg"], "deniedFlags": ["-r"], "maxPositional": 1}}
    options = {"ask": "off", "safeBins": ALL, "safeBinProfiles": profile}
    assert effect("jq --arg x y .", **options) == "allow"
    assert effect("jq --argjson x 1 .", **options) == "deny"
    assert effect("jq -r .", **options) == "deny"
    assert effect("jq env", **options) == "deny"


def test_a_profile_never_widens_what_is_built_in() -> None:
    profile = {
        "sort": {
            "allowedFlags": ["-r"],
            "allowedValueFlags": ["-o", "--compress-program"],
            "maxPositional": 5,
        }
    }
    options = {"ask": "off", "safeBins": ALL, "safeBinProfiles": profile}
    assert effect("sort -r", **options) == "allow"
    assert effect("sort -o x", **options) == "deny"
    assert effect("sort --compress-program=sh", **options) == "deny"
    assert effect("sort x", **options) == "deny"


def test_a_profile_that_counts_no_operands_leaves_those_of_the_table() -> None:
    options = {"ask": "off", "safeBins": ALL, "safeBinProfiles": {"jq": {"deniedFlags": ["-r"]}}}
    assert effect("jq .", **options) == "allow"
    assert effect("jq -r .", **options) == "deny"
    options["safeBinProfiles"] = {"jq": {"maxPositional": 0}}
    assert effect("jq .", **options) == "deny"


def test_a_profile_denies_options_with_a_value_that_may_be_left_out_too() -> None:
    options = {"ask": "off", "safeBins": ALL, "safeBinProfiles": {"grep": {"deniedFlags": ["--color"]}}}
    assert effect("grep --colour=never -e x", **options) == "allow"
    assert effect("grep --color=never -e x", **options) == "deny"
    assert effect("grep --col=never -e x", **options) == "deny"


@pytest.mark.parametrize("operand", ["/etc/passwd", "./x", ".env", "'~/x'", "a/b", "'*'"])
def test_an_operand_that_could_be_a_path_fails_where_nothing_is_known_of_the_program(operand: str) -> None:
    options = {"ask": "off", "safeBins": ["rev2"], "safeBinProfiles": {"rev2": {"maxPositional": 1}}}
    assert effect("rev2 word", **options) == "allow"
    assert effect(f"rev2 {operand}", **options) == "deny"


def test_a_program_of_the_operators_own_needs_a_profile() -> None:
    profile = {"column": {"allowedFlags": ["-t"], "allowedValueFlags": ["-s"]}}
    assert effect("column -t", ask="off", safeBins=["column"]) == "deny"
    assert effect("column -t -s ,", ask="off", safeBins=["column"], safeBinProfiles=profile) == "allow"
    assert effect("column -t x", ask="off", safeBins=["column"], safeBinProfiles=profile) == "deny"
