"""
Whether a command checks work, and whether the check passed.
"""

from __future__ import annotations

import pytest

from turngate.stopgate.evidence.checks import checks_in, edits_in, passed

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
        pytest.param("cd x && pytest", True, False, id="behind cd"),
        pytest.param("cd x; FOO=1 pytest", True, False, id="behind a semicolon"),
        pytest.param("pytest && echo ok", True, False, id="before echo"),
        pytest.param("pytest | tail -3", None, None, id="pipe"),
        pytest.param("pytest 2>&1 |& tee log", None, None, id="pipe of both"),
        pytest.param("set -o pipefail; pytest | tail", True, False, id="pipefail"),
        pytest.param("set -euo pipefail\npytest | tee log", True, False, id="pipefail among options"),
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
    ],
)
def test_the_exit_status_tells_only_what_the_line_lets_through(line: str, on_zero: object, on_other: object):
    """
    A pipe, `|| true` or a semicolon hides the check's status; then nothing is known.
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


@pytest.mark.parametrize(
    ("line", "files"),
    [
        pytest.param("sed -i 's/a/b/' x.py y.py", ("x.py", "y.py"), id="sed"),
        pytest.param("cat > x.py <<'EOF'\na > b\nEOF", ("x.py",), id="cat"),
        pytest.param("echo a >> x.md", ("x.md",), id="echo"),
        pytest.param("make | tee out.txt", ("out.txt",), id="tee"),
        pytest.param("git apply x.patch", (), id="git apply"),
        pytest.param("git checkout -- a.py", (), id="git checkout"),
        pytest.param("git stash pop", (), id="git stash"),
        pytest.param("patch -p1 < x", (), id="patch"),
        pytest.param("sed s/a/b/ x.py", None, id="sed that prints"),
        pytest.param("pytest > out.log 2>&1", None, id="a log"),
        pytest.param("echo a > /dev/null", None, id="the null device"),
        pytest.param("cat > /tmp/x", None, id="a temporary file"),
        pytest.param("git checkout -b x", None, id="a new branch"),
        pytest.param("git commit -m 'sed -i x'", None, id="a message"),
        pytest.param("ls", None, id="nothing"),
    ],
)
def test_edits_by_the_shell_are_known_by_structure(line: str, files: tuple[str, ...] | None):
    """
    Only what surely writes into a project's files counts.
    """
    assert edits_in(line) == (files is not None, files or ())
