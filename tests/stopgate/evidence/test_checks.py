"""
Whether a command checks work, and whether the check passed.
"""

from __future__ import annotations

import pytest

from turngate.stopgate.evidence.checks import checks_in, passed

CHECKS = """
pytest -q
python -m pytest tests
python3.12 -m unittest discover
.venv/bin/pytest
uv run --with x pytest -x
uv run -m pytest
poetry run mypy .
pipenv run flake8
hatch run pytest
coverage run -m pytest
tox -e py311
nox
ruff check .
ruff format --check
black --check .
pyright
python manage.py test
pre-commit run --all-files
npm test
npm t
npm run test:unit
npm run check-types
npm --prefix web run lint
pnpm lint
pnpm --filter web build
pnpm exec vitest run
yarn build
bun test
npx jest
npx --yes eslint .
npx tsc --noEmit
node_modules/.bin/mocha
node node_modules/.bin/jest
node --test
deno task test
go test ./...
go vet ./...
go build ./...
golangci-lint run
cargo test
cargo clippy -- -D warnings
cargo fmt --check
cargo nextest run
make
make -j4 all
make test
just lint
task build
mise run test:ci
mise exec -- go test ./...
rake spec
bundle exec rspec
mvn -q verify
./mvnw test
./gradlew test
./gradlew :app:testDebugUnitTest
dotnet test
phpunit
vendor/bin/phpstan analyse
composer test
swift test
xcodebuild -scheme x test
ctest --output-on-failure
cmake --build build
gcc -o x x.c
terraform validate
terraform fmt -check
shellcheck run.sh
bash -n run.sh
mix test
flutter analyze
nx test app
sudo -u x make check
time -p pytest
python -W error -m pytest
python -X dev -m unittest
go -C d test ./...
make -C sub
make -C build test
make -j 4
yarn workspace w test
hatch run test
OUT=$(npm test)
OUT="$(cd x && npm test 2>&1)"
timeout 60 env A=1 pytest
timeout -s KILL 60 pytest
time pytest
bash -c 'cd x && pytest -q'
cd web && npm test
A=1 pytest
""".strip().splitlines()

NO_CHECKS = [
    "cat <<EOF\npytest\nEOF",
    *"""
pytest --version
pytest --help
pytest --collect-only
tsc --init
command -v eslint
make -C tests clean
make -C build install
make -f ci.mk deploy
cargo test --no-run
go test -list .
ctest -N
tox -l
tox list
nox --list
playwright test --list
gcc -dumpversion
xcodebuild -list
webpack serve
test -f x
OUT='$(npm test)'
OUT=$(date)
OUT=$((1 + 1))
go version
cargo --version
make install
make clean
make -n test
npm install
npm ci
npm run dev
npm run deploy:test
yarn workspace
pip install pytest
grep -r pytest .
echo pytest
cat Makefile
git commit -m "pytest passes"
which pytest
ruff format .
black .
cargo fmt
python script.py
ls tests
""".strip().splitlines(),
]


@pytest.mark.parametrize("line", CHECKS)
def test_a_check_is_known_by_the_command(line: str):
    """
    Tests, linters, type checkers, compilers and builds, whatever they are wrapped in.
    """
    assert len(checks_in(line)) == 1


@pytest.mark.parametrize("line", NO_CHECKS)
def test_what_checks_nothing_is_no_check(line: str):
    """
    Neither does a command that only names one.
    """
    assert checks_in(line) == []


@pytest.mark.parametrize(
    ("line", "on_zero", "on_other"),
    [
        pytest.param("pytest", True, False, id="alone"),
        pytest.param("ruff check --exit-zero .", None, False, id="exit zero"),
        pytest.param("uv run ruff check -e", None, False, id="exit zero, in short"),
        pytest.param("make -ki test", None, False, id="make that ignores errors"),
        pytest.param("make --ignore-errors test", None, False, id="make that ignores errors, in long"),
        pytest.param("make -k test", True, False, id="make that keeps going"),
        pytest.param("npm test --if-present", None, False, id="a script that may be missing"),
        pytest.param("cd x && pytest", True, False, id="behind cd"),
        pytest.param("cd x; FOO=1 pytest", True, False, id="behind a semicolon"),
        pytest.param("pytest && echo ok", True, False, id="before echo"),
        pytest.param("pytest | tail -3", None, None, id="pipe"),
        pytest.param("pytest 2>&1 |& tee log", None, None, id="pipe of both"),
        pytest.param("set -o pipefail; pytest | tail", True, False, id="pipefail"),
        pytest.param("set -euo pipefail\npytest | tee log", True, False, id="pipefail among options"),
        pytest.param("set +o pipefail; pytest | tail", None, None, id="pipefail off"),
        pytest.param("set -o pipefail; set +o pipefail; pytest | tail", None, None, id="pipefail off again"),
        pytest.param("(set -o pipefail; a); pytest | tail", None, None, id="pipefail in other brackets"),
        pytest.param("(set -o pipefail; pytest | tail)", True, False, id="pipefail in the same brackets"),
        pytest.param("(cd x && pytest || exit 1); echo ok", None, None, id="an exit that leaves brackets only"),
        pytest.param(
            "(cd x && pytest || exit 1) && echo ok", True, False, id="an exit that leaves brackets with a status"
        ),
        pytest.param("{ pytest || exit 1; } | tail", None, None, id="an exit that leaves a pipe only"),
        pytest.param("pytest" + " && echo" * 1_000, None, None, id="in a line of too many commands"),
        pytest.param("f(){ pytest || return 1; }; f; echo ok", None, None, id="a return that leaves a function only"),
        pytest.param('x=$(pytest 2>&1); echo "$x"', None, None, id="in a substitution"),
        pytest.param("x=$(pytest)", True, False, id="in an assignment alone"),
        pytest.param("x=$(pytest | tail)", None, None, id="a pipe in a substitution"),
        pytest.param("cat x | pytest", True, False, id="end of a pipe"),
        pytest.param("pytest || true", None, None, id="or true"),
        pytest.param("pytest || exit 1", True, False, id="or exit"),
        pytest.param("pytest; echo done", None, None, id="semicolon"),
        pytest.param("pytest\necho done", None, None, id="next line"),
        pytest.param("pytest &", None, None, id="ampersand"),
        pytest.param("! pytest", None, None, id="negated"),
        pytest.param("if pytest; then echo ok; fi", None, None, id="condition"),
        pytest.param("npm install && pytest", True, None, id="something else may have failed"),
        pytest.param("bash -c 'pytest'", True, False, id="in a shell"),
        pytest.param("bash -c 'pytest | tail'", None, None, id="a pipe in a shell"),
        pytest.param("bash -c 'pytest' | tail", None, None, id="a shell in a pipe"),
        pytest.param("(cd x && pytest)", True, False, id="in brackets"),
        pytest.param("test -f done && pytest", True, None, id="behind a condition that held"),
        pytest.param("test -f done || pytest", None, None, id="behind or"),
        pytest.param("true || pytest", None, False, id="behind or, alone to fail"),
        pytest.param("a || (cd x; pytest)", None, None, id="in brackets behind or"),
        pytest.param("a || { cd x && pytest; }", None, None, id="in braces behind or"),
        pytest.param("set -o pipefail; a || b | pytest", None, None, id="in a pipe behind or"),
        pytest.param("a || b && pytest", True, None, id="behind what comes after or"),
        pytest.param("a || b; pytest", True, None, id="behind a semicolon after or"),
        pytest.param("bash -c 'a || pytest'", None, None, id="behind or in a shell"),
        pytest.param("a || bash -c 'pytest'", None, None, id="in a shell behind or"),
        pytest.param("if [ -f Makefile ]; then make test; fi", None, None, id="in a branch"),
        pytest.param("if [ -f Makefile ]\nthen\n  a\nelse\n  make test\nfi", None, None, id="in the other branch"),
        pytest.param("for f in a b; do pytest $f; done", None, None, id="in a loop"),
        pytest.param("ls | while read f; do pytest $f; done", None, None, id="in a loop that may not begin"),
        pytest.param("case $x in a) pytest;; esac", None, False, id="in a case"),
        pytest.param("t() { pytest; }", None, False, id="in a function never called"),
        pytest.param("function t { pytest; }", None, False, id="in a function of the other form"),
        pytest.param("if a; then b; fi; pytest", True, None, id="behind a branch"),
        pytest.param("for f in a b; do echo $f; done; pytest", True, None, id="behind a loop"),
        pytest.param("t() { echo a; }; pytest", True, False, id="behind a function"),
        pytest.param("case $x in pytest) echo a;; esac; tox", True, False, id="behind a case that names one"),
        pytest.param("[ -f x ] || exit 0; pytest", None, None, id="behind a way out"),
        pytest.param("if a; then exit; fi; pytest", None, None, id="behind a way out that hands on a status"),
        pytest.param("exec a; pytest", None, None, id="behind a command that takes the shell's place"),
        pytest.param("cd x || exit 1; pytest", True, False, id="behind a way out by failure"),
        pytest.param("cd x || exit; pytest", True, False, id="behind a way out that hands on a failure"),
    ],
)
def test_the_exit_status_tells_only_what_the_line_lets_through(line: str, on_zero: object, on_other: object):
    """
    A pipe, `|| true` or a semicolon hides the check's status, and what stands behind `||`, in a branch or a loop may never have run; then
    nothing is known.
    """
    (ran,) = checks_in(line)

    assert (passed(ran, 0), passed(ran, 1), passed(ran, None)) == (on_zero, on_other, None)


def test_of_several_checks_all_passed_or_one_failed():
    """
    Status 0 says that both passed; another does not say which failed.
    """
    ran = checks_in("npm run lint && npm test")

    assert [passed(check, 0) for check in ran] == [True, True]
    assert [passed(check, 1) for check in ran] == [None, None]


@pytest.mark.parametrize(
    ("line", "pattern"),
    [
        pytest.param("./verify.sh --all", "./verify*", id="glob"),
        pytest.param("./verify.sh --all", "./verify.sh", id="without a star"),
        pytest.param("cd x && scripts/ci && echo ok", "scripts/ci", id="in a line"),
        pytest.param("timeout 9 scripts/ci fast", "ci*", id="unwrapped"),
    ],
)
def test_a_project_has_checks_of_its_own(line: str, pattern: str):
    """
    By the pattern of a setting.
    """
    assert checks_in(line) == []
    assert len(checks_in(line, [pattern])) == 1
    assert checks_in("ls", [pattern]) == []
