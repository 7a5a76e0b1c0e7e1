"""What `init` finds in a tree: the build system, its outputs and the programs among them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from perftrail.verbs.init.draft import BuildDraft, Tree
from perftrail.verbs.init.systems import SYSTEMS, detect
from tests.verbs.init.projects import MAIN_C, PROJECTS, Project


def tree_of(files: Mapping[str, str], *, runnable: frozenset[str] = frozenset(), name: str = "tiny") -> Tree:
    return Tree(name=name, is_executable={path: path in runnable for path in files}, texts=files)


def best(files: Mapping[str, str], *, runnable: frozenset[str] = frozenset()) -> BuildDraft:
    return detect(tree_of(files, runnable=runnable))[0][0]


@pytest.mark.parametrize("project", PROJECTS, ids=lambda project: project.system)
def test_each_build_system_is_found_with_what_can_be_run(project: Project) -> None:
    found = best(project.files)
    assert (found.system, found.benchmark.command) == (project.system, project.command)
    assert found.benchmark.placeholder == project.placeholder
    assert all(step.why for step in found.steps)


def test_every_build_system_has_a_project_here() -> None:
    assert {project.system for project in PROJECTS} == set(SYSTEMS)


def test_a_benchmark_program_is_preferred_to_the_program() -> None:
    lists = "project(tiny C)\nadd_executable(tiny main.c)\nadd_executable(tiny_bench bench.c)\n"
    found = best({"CMakeLists.txt": lists, "main.c": MAIN_C, "bench.c": MAIN_C})
    assert found.benchmark.command == "{build}/build/bin/tiny_bench"
    assert not found.benchmark.placeholder


def test_a_target_that_an_option_turns_on_comes_after_one_that_is_always_made() -> None:
    lists = (
        'option(TINY_BENCHMARKS "make them" OFF)\nadd_executable(tiny main.c)\n'
        "if(TINY_BENCHMARKS)\n  add_executable(tiny_bench bench.c)\nendif()\n"
    )
    found = best({"CMakeLists.txt": lists, "main.c": MAIN_C})
    assert found.benchmark.command == "{build}/build/bin/tiny --version"
    assert any("-DTINY_BENCHMARKS=ON" in hint for hint in found.hints)


def test_tests_are_never_taken_for_the_program() -> None:
    lists = "add_executable(test_api t.c)\nadd_executable(other main.c)\n"
    assert best({"CMakeLists.txt": lists}).benchmark.command == "{build}/build/bin/other"


def test_comments_and_quotes_of_cmake_are_read_as_cmake_reads_them() -> None:
    lists = '#[[ add_executable(no a.c) ]]\n# add_executable(nor a.c)\nset(N "real")\nadd_executable(${N} "a b.c")\n'
    assert best({"CMakeLists.txt": lists}).outputs == ("build/bin/real",)


def test_a_build_directory_of_the_history_is_left_alone() -> None:
    files = {"CMakeLists.txt": "add_executable(tiny a.c)", "build/notes": ""}
    assert best(files).outputs == ("build-perftrail/bin/tiny",)


def test_a_place_for_programs_that_the_project_sets_is_followed() -> None:
    lists = "set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/out)\nadd_executable(tiny a.c)\n"
    assert best({"CMakeLists.txt": lists}).outputs == ("build/out/tiny",)


def test_a_subdirectory_that_makes_the_program_is_entered() -> None:
    files = {f"expat/{path}": text for path, text in PROJECTS[3].files.items()}
    [(found, name)] = detect(tree_of({**files, "README": ""}))
    assert name == "expat"
    assert found.benchmark.command == "{build}/expat/build/bin/tiny --version"
    assert found.outputs == ("expat/build/bin/tiny",)


def test_all_that_fit_are_found_and_the_one_that_says_most_comes_first() -> None:
    found = detect(tree_of({**PROJECTS[0].files, **PROJECTS[3].files}))
    assert [building.system for building, _ in found] == ["cmake", "make"]


def test_a_makefile_that_enters_directories_gives_their_programs() -> None:
    files = {
        "Makefile": "all:\n\t$(MAKE) -C programs\n",
        "programs/Makefile": "lz: a.o\n\t$(CC) $^ -o $@\n",
    }
    assert best(files).benchmark.command == "{build}/programs/lz"


def test_a_program_is_asked_for_what_its_own_source_knows() -> None:
    makefile = {"Makefile": "tiny: tiny.c\n\tcc -o $@ tiny.c\n"}
    table = 'struct option options[] = {{"version", no_argument, NULL, 1}};\nint main(void) {}\n'
    library = {"tiny.c": "int tiny(void);\n", "main.c": MAIN_C}
    assert best({**makefile, "tiny.c": table}).benchmark.command == "{build}/tiny --version"
    assert best({**makefile, **library}).benchmark.command == "{build}/tiny --version"
    assert best({**makefile, "other.c": MAIN_C}).benchmark.command == "{build}/tiny"


def test_what_plain_make_does_not_make_is_not_run() -> None:
    files = {"Makefile": "all: tiny\ntiny: a.c\n\tcc -o $@ a.c\ntinybench: b.c\n\tcc -o $@ b.c\n"}
    assert best(files).benchmark.command == "{build}/tiny"


def test_a_library_is_started_by_its_tests_until_there_is_better() -> None:
    found = best({"Makefile": "lib.a: a.o\n\tar r $@ a.o\ncheck: lib.a\n\t./run\n"})
    assert found.benchmark.command == "make --silent -C {build} check"


def test_libtool_gets_the_option_to_link_libraries_statically() -> None:
    files = {"configure": "", "configure.ac": "LT_INIT\n", "Makefile.am": "bin_PROGRAMS = tiny\n"}
    assert best(files).steps[0].line == "sh ./configure --disable-shared"


def test_a_generator_of_configure_is_run_when_the_history_contains_no_configure() -> None:
    files = {"configure.ac": "", "autogen.sh": "", "Makefile.am": ""}
    found = best(files, runnable=frozenset({"autogen.sh"}))
    assert [step.line for step in found.steps][:2] == ["./autogen.sh", "./configure"]


CRITERION = (
    '[package]\nname = "tiny"\nedition = "2021"\n[dev-dependencies]\ncriterion = "0.5"\n'
    '[[bench]]\nname = "sums"\nharness = false\n'
)


@pytest.mark.parametrize("kind", ["criterion", "divan"])
def test_the_benchmarks_of_a_crate_are_a_suite(kind: str) -> None:
    manifest = CRITERION.replace("criterion", kind)
    found = best({"Cargo.toml": manifest, "src/lib.rs": "", "benches/sums.rs": "", "Cargo.lock": ""})
    assert found.suite is not None
    assert (found.suite.kind, found.suite.program) == (kind, ("perftrail-bench/**/*",))
    assert found.outputs == ("perftrail-bench/**",)
    assert "cargo bench --no-run --locked --workspace --benches " in found.steps[0].line


def test_cargos_messages_are_copied_by_package(tmp_path: Path) -> None:
    found = best({"Cargo.toml": CRITERION, "src/lib.rs": "", "benches/sums.rs": ""})
    for name in ("sums-0123", "it-4567"):
        (tmp_path / name).write_text("program")
    messages = [
        {
            "reason": "compiler-artifact",
            "manifest_path": f"{tmp_path}/{package}Cargo.toml",
            "target": {"kind": [kind], "crate_types": ["bin"], "name": name},
            "executable": f"{tmp_path}/{executable}",
        }
        for package, kind, name, executable in (
            ("", "bench", "sums", "sums-0123"),
            ("crates/deep/", "bench", "it", "it-4567"),
            ("", "test", "no", "sums-0123"),
        )
    ]
    lines = (json.dumps(each, separators=(",", ":")) for each in messages)
    (tmp_path / "perftrail-bench.json").write_text("\n".join(lines))
    subprocess.run(["/bin/sh", "-euc", found.steps[1].line], cwd=tmp_path, check=True)
    copied = sorted(
        str(each.relative_to(tmp_path))
        for each in (tmp_path / "perftrail-bench").rglob("*")
        if each.is_file()
    )
    assert copied == ["perftrail-bench/crates/deep/it", "perftrail-bench/sums"]


def test_a_benchmark_that_needs_cargo_is_started_by_cargo() -> None:
    manifest = CRITERION.replace("criterion", "iai-callgrind")
    found = best({"Cargo.toml": manifest, "src/lib.rs": "", "benches/sums.rs": ""})
    assert found.benchmark.command == "cargo bench --manifest-path {build}/Cargo.toml --bench sums"
    assert found.outputs == ()


@pytest.mark.parametrize(
    ("manifest", "files", "program"),
    [
        ('[[bin]]\nname = "tool"\npath = "src/main.rs"\n', ["src/main.rs"], "tool"),
        ("", ["src/main.rs", "src/bin/other.rs"], "tiny"),
        ("", ["src/bin/other/main.rs", "src/bin/other/part.rs"], "other"),
        ("autobins = false\n", ["src/main.rs"], None),
        ('[[bin]]\nname = "tool"\nrequired-features = ["x"]\n', ["src/bin/plain.rs"], "plain"),
    ],
)
def test_the_program_is_the_one_that_cargo_builds(
    manifest: str, files: list[str], program: str | None
) -> None:
    package = '[package]\nname = "tiny"\nedition = "2021"\n'
    found = best({"Cargo.toml": package + manifest, **dict.fromkeys(files, "")})
    assert found.outputs == (() if program is None else (f"target/release/{program}",))


def test_a_crate_of_2015_that_names_a_program_has_no_others() -> None:
    manifest = '[package]\nname = "tiny"\n[[bin]]\nname = "tool"\npath = "src/tool.rs"\n'
    found = best({"Cargo.toml": manifest, "src/main.rs": "", "src/tool.rs": ""})
    assert found.outputs == ("target/release/tool",)


def test_files_that_cargo_does_not_compile_affect_no_build() -> None:
    files = {"Cargo.toml": '[package]\nname = "tiny"\n', "src/main.rs": "", "src/notes.md": ""}
    assert best(files).unaffected_by == ()
    documents = {"README.md": "", "LICENSE-MIT": "", ".github/workflows/ci.yml": "", "docs/a.txt": ""}
    found = best(files | documents)
    assert found.unaffected_by == ("*.md", "LICENSE*", ".github/**", "docs/**")
    workspace = {
        "Cargo.toml": '[workspace]\nmembers = ["docs/tool"]\n',
        "docs/tool/Cargo.toml": files["Cargo.toml"],
    }
    assert best(workspace | {"docs/tool/src/main.rs": ""}).unaffected_by == ()


PYTEST = """\
import pytest


def test_small(benchmark):
    benchmark(sum, range(9))


class TestLarge:
    def test_large(self, benchmark):
        benchmark(sum, range(9999))


@pytest.mark.parametrize("n", [1, 2])
def test_each(benchmark, n):
    benchmark(sum, range(n))


def test_without(capsys):
    pass
"""


def test_tests_with_the_fixture_of_pytest_benchmark_are_a_suite() -> None:
    files = {
        "pyproject.toml": '[project]\nname = "tiny"\n',
        "tiny/__init__.py": "",
        "tests/test_speed.py": PYTEST,
    }
    found = best(files)
    assert found.steps[0].line.endswith(" . pytest pytest-benchmark")
    assert found.suite is not None
    assert (found.suite.kind, found.suite.path) == ("pytest-benchmark", "tests/test_speed.py")
    assert found.suite.env["PYTHONPATH"] == "{build}/perftrail-site"
    assert found.outputs == ("perftrail-site/tiny", "tests/test_speed.py")


def test_a_suite_gets_the_packages_that_it_uses_and_those_for_benchmarks() -> None:
    project = """\
[project]
name = "tiny-thing"
[project.optional-dependencies]
fast = ["orjson>=3; python_version > '3.9'"]
docs = ["sphinx"]
all = ["tiny-thing[fast]", "sphinx"]
[dependency-groups]
test = ["pytest>=8", "Some-Thing==1.*", "hypothesis", {include-group = "lint"}]
benchmark = ["wrapt", "-rhostile", "hostile @ file:///hostile", "{build}"]
"""
    files = {
        "pyproject.toml": project,
        "tiny_thing/__init__.py": "",
        "conftest.py": "import some_thing",
        "other/conftest.py": "import hypothesis",
        "tests/test_speed.py": "from tiny_thing.fast import dumps\n" + PYTEST + "all([])",
    }
    assert (
        best(files)
        .steps[0]
        .line.endswith(
            """ . pytest pytest-benchmark 'orjson>=3; python_version > '"'"'3.9'"'"'' 'Some-Thing==1.*' wrapt"""
        )
    )


def test_other_tests_are_not_taken_for_benchmarks() -> None:
    text = PYTEST.replace("benchmark", "bench")
    files = {
        "pyproject.toml": '[project]\nname = "tiny"\n',
        "tiny/__init__.py": "",
        "tests/test_speed.py": text,
    }
    assert best(files).benchmark.placeholder
    assert best(files).suite is None


def test_a_suite_of_asv_without_its_directory_is_noted_with_what_to_do() -> None:
    files = {"pyproject.toml": '[project]\nname = "tiny"\n', "tiny/__init__.py": "", "asv.conf.json": "{}"}
    [note] = best(files).notes
    assert note.startswith("asv.conf.json: perftrail did not find its benchmark_dir; ")
    assert "perftrail import RESULTS reads asv's results" in note


POM = '<?xml version="1.0" encoding="UTF-8"?><project xmlns="http://maven.apache.org/POM/4.0.0">{}</project>'
JMH = "<dependencies><dependency><artifactId>jmh-core</artifactId></dependency></dependencies>"
SHADE = (
    "<properties><uberjar.name>speed</uberjar.name></properties><build><plugins><plugin><artifactId>maven-shade-plugin"
    "</artifactId><executions><execution><configuration><finalName>${uberjar.name}</finalName></configuration>"
    "</execution></executions></plugin></plugins></build>"
)


def test_a_module_of_maven_that_depends_on_jmh_is_a_suite() -> None:
    found = best(
        {
            "pom.xml": POM.format("<modules><module>core</module><module>bench</module></modules>"),
            "core/pom.xml": POM.format("<!-- <dependency><artifactId>jmh-core</artifactId></dependency> -->"),
            "bench/pom.xml": POM.format(JMH + SHADE),
        }
    )
    assert found.suite is not None
    assert (found.suite.kind, found.suite.program) == ("jmh", ("bench/target/speed.jar",))
    assert "--projects bench --also-make package" in found.steps[0].line
    assert found.outputs == found.suite.program


def test_a_module_of_a_profile_is_built_with_it() -> None:
    profile = "<profile><id>speed</id><modules><module>bench</module></modules></profile>"
    found = best(
        {"pom.xml": POM.format(f"<profiles>{profile}</profiles>"), "bench/pom.xml": POM.format(JMH + SHADE)}
    )
    assert "--activate-profiles speed " in found.steps[0].line


def test_benchmarks_of_maven_without_a_jar_for_them_run_with_copied_dependencies() -> None:
    found = best({"pom.xml": POM.format(JMH)})
    assert found.suite is not None
    assert found.suite.program == ("target/test-classes", "target/classes", "target/dependency/*.jar")
    assert found.steps[0].line.endswith(" package dependency:copy-dependencies")


def test_a_hostile_module_of_maven_is_not_built() -> None:
    hostile = POM.format(
        "<modules><module>$(touch pwned)</module><module>../out</module></modules>"
        "<profiles><profile><id>a; b</id><modules><module>bench</module></modules></profile></profiles>"
    )
    files = {f"{each}/pom.xml": POM.format(JMH) for each in ("$(touch pwned)", "../out", "bench")}
    assert best({"pom.xml": hostile, **files}).suite is None


def test_tests_used_as_a_benchmark_are_compiled_by_the_build() -> None:
    found = best({"Cargo.toml": '[package]\nname = "tiny"\n', "src/lib.rs": "", "Cargo.lock": ""})
    assert found.benchmark.command.startswith("cargo test --release ")
    assert found.steps[-1].line == "cargo test --release --no-run --locked"


def test_lints_of_a_newer_compiler_stop_no_build_unless_a_crate_has_flags_of_its_own() -> None:
    files = {"Cargo.toml": '[package]\nname = "tiny"\n', "src/lib.rs": ""}
    found = best(files)
    assert found.env == found.benchmark.env == {"RUSTFLAGS": "--cap-lints=warn"}
    own = best({**files, ".cargo/config.toml": '[build]\nrustflags = ["-Ctarget-cpu=native"]\n'})
    assert (own.env, own.benchmark.env) == ({}, {})
    assert ".cargo/config.toml" in own.hints[0]


def test_a_workspace_gives_the_programs_of_its_crates() -> None:
    files = {
        "Cargo.toml": '[workspace]\nmembers = ["crates/*"]\n',
        "crates/tiny/Cargo.toml": '[package]\nname = "tiny"\n',
        "crates/tiny/src/main.rs": "",
        "Cargo.lock": "",
    }
    found = best(files)
    assert found.benchmark.command == "{build}/target/release/tiny --version"
    assert found.steps[0].line == "cargo build --release --locked --workspace"


def test_a_pyproject_with_only_settings_is_not_a_package() -> None:
    assert detect(tree_of({"pyproject.toml": "[tool.ruff]\nline-length = 100\n"})) == ()


@pytest.mark.parametrize(
    ("package", "lines"),
    [
        ('{"main": "a.js", "devDependencies": {"mocha": "1"}}', []),
        (
            '{"main": "a.js", "dependencies": {"b": "1"}, "devDependencies": {"mocha": "1"}}',
            ["npm install --no-audit --no-fund --no-package-lock --omit=dev"],
        ),
        (
            '{"main": "a.js", "devDependencies": {"tsc": "1"}, "scripts": {"build": "tsc"}}',
            ["npm install --no-audit --no-fund --no-package-lock", "npm run build"],
        ),
        (
            '{"devDependencies": {"benchmark": "1"}, "scripts": {"bench": "node b.js"}}',
            ["npm install --no-audit --no-fund --no-package-lock"],
        ),
    ],
)
def test_a_package_gets_what_it_needs_to_run_and_no_more(package: str, lines: list[str]) -> None:
    assert [step.line for step in best({"package.json": package, "a.js": ""}).steps] == lines


def test_a_package_json_with_only_tools_is_not_a_package() -> None:
    assert detect(tree_of({"package.json": '{"private": true}'})) == ()


def test_a_benchmark_script_counts_as_part_of_what_is_measured() -> None:
    files = {
        **PROJECTS[-1].files,
        "benchmarks/bench_it.py": "if __name__ == '__main__':\n    print('rate=1')\n",
        "benchmarks/plot.py": "if __name__ == '__main__':\n    pass\n",
    }
    found = best(files)
    assert found.benchmark.command == "python3 {build}/benchmarks/bench_it.py"
    assert found.outputs == ("perftrail-site/tiny_thing", "benchmarks")


@pytest.mark.parametrize(
    "name",
    [
        "$(touch pwned)",
        "a; touch pwned",
        "--upload-pack=x",
        "../../out",
        "a b",
        "{study}",
        "a\nb",
        "\u202egpj",
    ],
)
def test_no_hostile_name_gets_into_a_line_that_is_run(name: str) -> None:
    files = {
        "CMakeLists.txt": f'add_executable("{name}" a.c)\nadd_executable(tiny a.c)\n',
        f"bench/{name}.sh": "",
        f"{name}/Makefile": "",
    }
    found = best(files, runnable=frozenset({f"bench/{name}.sh"}))
    lines = [found.benchmark.command, *found.outputs, *(step.line for step in found.steps)]
    assert not any(name in line for line in lines)


@pytest.mark.parametrize(
    "files",
    [
        {"Cargo.toml": "not [ toml"},
        {"package.json": '{"scripts": [1], "bin": {"a": 3}, "main": 7}'},
        {"package.json": "[" * 100_000},
        {"pyproject.toml": 'project = 3\nbuild-system = "x"\ntool = []\n', "setup.py": ""},
        {"CMakeLists.txt": 'add_executable(\n"unclosed'},
        {"CMakeLists.txt": "add_subdirectory(.)\nset(A ${A})\nadd_executable(${A})\n"},
        {"meson.build": "project('a')\nsubdir('.')\nexecutable(\n"},
        {"Makefile": "A = $(A) $(A)\n$(A): b\n\t$(A)\n%: %.c\n:\n\t\n"},
        {"go.mod": "", "main.go": "package main"},
        {"pom.xml": "<project><modules><module>.</module><module/></modules></project>"},
        {"pom.xml": '<?xml version="1.0" encoding="none"?><project/>'},
        {"pom.xml": "<project>"},
        {"configure.in": "", "Makefile.am": "bin_PROGRAMS = $(bin_PROGRAMS) @X@\n"},
    ],
    ids="+".join,
)
def test_invalid_manifests_are_ignored(files: dict[str, str]) -> None:
    for building, _ in detect(tree_of(files)):
        assert building.benchmark.command


def test_a_declared_benchmark_of_meson_is_proposed_with_its_arguments() -> None:
    manifest = (
        "project('tiny', 'c')\n# benchmark('old', exe)\nexe = executable('speed', 'bench.c')\n"
        "executable('tiny', 'main.c')\nbenchmark('fast path', exe, args: ['--size', 'a b'], timeout: 60)\n"
    )
    found = best({"meson.build": manifest, "main.c": MAIN_C, "bench.c": MAIN_C})
    assert found.benchmark.command == "{build}/build/speed --size 'a b'"
    assert found.benchmark.why == 'benchmark "fast path" of meson.build'
    assert (found.outputs, found.benchmark.placeholder) == (("build/speed",), False)


def test_a_declared_benchmark_of_meson_with_unknown_arguments_is_not_guessed() -> None:
    manifest = (
        "project('tiny', 'c')\nexe = executable('speed', 'b.c')\nbenchmark('x', exe, args: [data_file])\n"
    )
    assert best({"meson.build": manifest, "b.c": MAIN_C}).benchmark.why != 'benchmark "x" of meson.build'


@pytest.mark.parametrize(
    ("default", "flag"), [(" OFF", " -DBUILD_BENCHMARKS=ON"), ("", " -DBUILD_BENCHMARKS=ON"), (" ON", "")]
)
def test_an_option_that_the_benchmark_needs_is_switched_on(default: str, flag: str) -> None:
    lists = (
        f'project(tiny C)\noption(BUILD_BENCHMARKS "Build them"{default})\nadd_library(tiny tiny.c)\n'
        "if(BUILD_BENCHMARKS)\n  add_executable(tiny_bench bench.c)\nendif()\n"
    )
    found = best({"CMakeLists.txt": lists, "tiny.c": MAIN_C, "bench.c": MAIN_C})
    assert found.benchmark.command == "{build}/build/bin/tiny_bench"
    assert f"-DBUILD_SHARED_LIBS=OFF{flag} -DCMAKE_RUNTIME" in found.steps[0].line
    assert not found.hints


@pytest.mark.parametrize(
    ("script", "is_found"),
    [
        ("for number in range(9):\n    print(number)\n", True),
        ("import demo\ndemo.work()\n", True),
        ("def main():\n    pass\nif __name__ == '__main__':\n    main()\n", True),
        ("import demo\n\ndef test_work(benchmark):\n    benchmark(demo.work)\n", False),
        ("broken(", False),
    ],
)
def test_a_python_script_that_does_something_is_a_benchmark(script: str, is_found: bool) -> None:
    files = {"pyproject.toml": '[project]\nname = "tiny"\n', "tiny.py": "", "bench_tiny.py": script}
    found = best(files)
    assert (found.benchmark.command == "python3 {build}/bench_tiny.py") == is_found
