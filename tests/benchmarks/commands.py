"""Command lines as agents that write programs ask for them."""

from __future__ import annotations

from collections.abc import Iterator

_LINES = """
git status --short
git log --oneline -20
git diff --stat HEAD~3
git add -A && git commit -m 'Fix the parser'
git show --stat | head -40
ls -la src/{n}
cat README.md | head -50
sed -n '1,80p' src/main{n}.py
head -n 120 src/app{n}.py | tail -n 40
rg -n 'def main' src
grep -rn 'TODO {n}' src | sort | uniq -c | head
find . -name '*.py' -newer setup{n}.py | xargs wc -l
wc -l src/*.py
python3 -m pytest -q tests/test_{n}.py
python3 -c 'print({n})'
npm run build
npm test -- --watch=false
npx tsc --noEmit
node scripts/check{n}.js
make -j4 test
timeout 60 make check
env CI=1 make lint
mkdir -p build/{n} && cp -r assets build/{n}
rm -rf build/{n}
mv out.txt out{n}.txt
touch src/new{n}.py
chmod 644 src/new{n}.py
echo 'done {n}' > result.txt
cd src && git diff --name-only
jq '.items[{n}].name' package.json
curl -s https://example.org/api/{n} | jq .
tar -czf backup{n}.tgz src
diff -u old{n}.txt new{n}.txt
bash -c 'for f in *.py; do echo $f; done'
which python3 && python3 --version
date -u +%Y-%m-%d
du -sh build/{n}
cargo test --package core{n}
docker ps --filter name=app{n}
awk '{{print ${n}}}' table.txt
"""


def command_lines(count: int, first: int = 0) -> Iterator[str]:
    """Give so many command lines, no two of them the same."""
    kinds = _LINES.strip().splitlines()
    for number in range(first, first + count):
        yield f"{kinds[number % len(kinds)].format(n=number)} x{number}"
