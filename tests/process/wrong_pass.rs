//! No pass that a fresh checkout would not give: build tools that go by times, in each language.

use std::fs;

use serde_json::json;

use crate::bench::{Bench, has, sandboxes, times};

/// A small project whose one test passes while `v` says `good`.
struct Project {
    tools: &'static [&'static str],
    files: &'static [(&'static str, &'static str)],
    command: &'static str,
    /// The file that decides, and its text with `good` in it. The other word is `evil`.
    v: (&'static str, &'static str),
    /// A word that the tool prints when it builds something; empty if it prints nothing.
    builds: &'static str,
}

const RUST: Project = Project {
    tools: &["cargo"],
    files: &[
        ("Cargo.toml", "[package]\nname = \"p\"\nversion = \"0.1.0\"\nedition = \"2024\"\n"),
        ("Cargo.lock", "version = 4\n\n[[package]]\nname = \"p\"\nversion = \"0.1.0\"\n"),
        (
            "src/lib.rs",
            "#[test]\nfn good() { assert_eq!(include_str!(\"../data/v.txt\").trim(), \"good\") }\n",
        ),
        ("build.rs", "fn main() { println!(\"cargo::rerun-if-changed=data\") }\n"),
    ],
    command: "cargo test --offline 2>&1",
    v: ("data/v.txt", "good\n"),
    builds: "Compiling",
};

const MAKE: Project = Project {
    tools: &["make", "cc"],
    files: &[
        (
            "main.c",
            "#include <string.h>\n#include \"v.h\"\nint main(void) { return strcmp(V, \"good\") != 0; }\n",
        ),
        ("Makefile", "check: t\n\t./t\nt: main.c v.h\n\t$(CC) -o t main.c\n"),
    ],
    command: "make check",
    v: ("v.h", "#define V \"good\"\n"),
    builds: "-o t",
};

const NINJA: Project = Project {
    tools: &["ninja", "cc"],
    files: &[
        (
            "main.c",
            "#include <string.h>\n#include \"v.h\"\nint main(void) { return strcmp(V, \"good\") != 0; }\n",
        ),
        (
            "build.ninja",
            "rule cc\n  command = cc -MMD -MF $out.d -o $out $in\n  depfile = $out.d\n  deps = gcc\nbuild t: cc main.c\n",
        ),
    ],
    command: "ninja && ./t",
    v: ("v.h", "#define V \"good\"\n"),
    builds: "[1/1]",
};

const CMAKE: Project = Project {
    tools: &["cmake", "make", "cc"],
    files: &[
        (
            "main.c",
            "#include <string.h>\n#include \"v.h\"\nint main(void) { return strcmp(V, \"good\") != 0; }\n",
        ),
        ("CMakeLists.txt", "cmake_minimum_required(VERSION 3.10)\nproject(p C)\nadd_executable(t main.c)\n"),
    ],
    command: "cmake -S . -B out > log && cmake --build out && out/t",
    v: ("v.h", "#define V \"good\"\n"),
    builds: "Building C object",
};

const JAVA: Project = Project {
    tools: &["javac", "java"],
    files: &[
        (
            "T.java",
            "class T { public static void main(String[] a) { if (!V.V.equals(\"good\")) System.exit(1); } }\n",
        ),
        (
            "Makefile",
            "check: out/T.class\n\tjava -cp out T\nout/T.class: T.java V.java\n\tjavac -d out T.java V.java\n",
        ),
    ],
    command: "make check",
    v: ("V.java", "class V { static final String V = \"good\"; }\n"),
    builds: "javac -d",
};

const PYTHON: Project = Project {
    tools: &["python3"],
    files: &[("t.py", "import v\nassert v.V == 'good'\n")],
    command: "python3 t.py",
    v: ("v.py", "V = 'good'\n"),
    builds: "",
};

const GO: Project = Project {
    tools: &["go"],
    files: &[
        ("go.mod", "module p\n\ngo 1.19\n"),
        (
            "p_test.go",
            "package p\n\nimport (\n\t\"os\"\n\t\"strings\"\n\t\"testing\"\n)\n\nfunc TestGood(t *testing.T) {\n\
             \tb, err := os.ReadFile(\"testdata/v\")\n\tif err != nil || strings.TrimSpace(string(b)) != \"good\" {\n\
             \t\tt.Fatal(string(b), err)\n\t}\n}\n",
        ),
    ],
    command: "go test ./...",
    v: ("testdata/v", "good\n"),
    builds: "",
};

const NODE: Project = Project {
    tools: &["node"],
    files: &[("t.js", "require('assert').strictEqual(require('./v.js'), 'good')\n")],
    command: "node t.js",
    v: ("v.js", "module.exports = 'good'\n"),
    builds: "",
};

impl Project {
    fn bench(&self) -> Option<Bench> {
        has(self.tools).then(|| {
            let bench = Bench::new(self.command, self.files);
            self.turn(&bench, true);
            bench
        })
    }

    /// Makes the file that decides say `good`, or `evil`, which has as many bytes.
    fn turn(&self, bench: &Bench, good: bool) {
        let (name, text) = self.v;
        bench.write(name, &if good { text.to_owned() } else { text.replace("good", "evil") });
    }
}

/// Goes back and forth between two texts of one size, and lets the new one be older than what was built.
fn back_and_forth(project: &Project) {
    let Some(bench) = project.bench() else { return };
    for round in 0..times(4, 20) {
        let good = round % 2 == 0;
        project.turn(&bench, good);
        if round % 4 >= 2 {
            bench.age(project.v.0);
        }
        if good {
            bench.passes()
        } else {
            bench.fails()
        };
    }
}

/// A second run without changes builds nothing, neither does one after an edit that does not matter.
fn builds_once(project: &Project) {
    let Some(bench) = project.bench() else { return };
    bench.write("docs/x.md", "one\n");
    let built = |tail: &[String]| tail.iter().any(|line| line.contains(project.builds));
    let first = bench.passes();
    assert!(first.run.fresh && built(&first.tail), "{}", first.tail.join("\n"));
    for text in ["one\n", "two\n"] {
        bench.write("docs/x.md", text);
        bench.checkout.status().unwrap();
        let again = bench.passes();
        assert!(!again.run.fresh && !built(&again.tail), "{}", again.tail.join("\n"));
    }
}

#[test]
fn n01_n04_rust() {
    back_and_forth(&RUST);
}

#[test]
fn n01_n04_make() {
    back_and_forth(&MAKE);
}

#[test]
fn n01_n04_ninja() {
    back_and_forth(&NINJA);
}

#[test]
fn n01_n04_cmake() {
    back_and_forth(&CMAKE);
}

#[test]
fn n01_n04_java() {
    back_and_forth(&JAVA);
}

#[test]
fn n01_n04_python() {
    back_and_forth(&PYTHON);
}

#[test]
fn n01_n04_go() {
    back_and_forth(&GO);
}

#[test]
fn n01_n04_node() {
    back_and_forth(&NODE);
}

#[test]
fn n02_rust_builds_once() {
    builds_once(&RUST);
}

#[test]
fn n02_make_builds_once() {
    builds_once(&MAKE);
}

#[test]
fn n02_cmake_builds_once() {
    builds_once(&CMAKE);
}

#[test]
fn n02_ninja_builds_once() {
    builds_once(&NINJA);
}

#[test]
fn n02_java_builds_once() {
    builds_once(&JAVA);
}

#[test]
fn n05_a_source_that_is_gone_lives_on_in_no_archive() {
    if !has(&["make", "cc", "ar"]) {
        return;
    }
    let make = "SOURCES := $(wildcard lib/*.c)\ncheck: t\n\t./t\nt: main.c lib.a\n\t$(CC) -o t main.c lib.a\n\
                lib.a: $(SOURCES:.c=.o)\n\tar rcs lib.a $^\n";
    let files = [
        ("Makefile", make),
        ("main.c", "int g(void); int main(void) { return g(); }\n"),
        ("lib/f.c", "int f(void) { return 0; }\n"),
        ("lib/g.c", "int g(void) { return 0; }\n"),
    ];
    let bench = Bench::new("make check", &files);
    bench.passes();
    fs::rename(bench.path("lib/g.c"), bench.path("g.txt")).unwrap();
    let failed = bench.fails();
    assert!(failed.emptied.as_deref().is_some_and(|why| why.contains("lib/g.c")), "{failed:?}");
    fs::rename(bench.path("g.txt"), bench.path("lib/g.c")).unwrap();
    bench.passes();
}

#[test]
fn n05_a_class_that_is_gone_lives_on_in_no_folder() {
    if !has(&["javac", "java"]) {
        return;
    }
    let files = [
        ("A.java", "class A { public static void main(String[] a) { new B(); } }\n"),
        ("B.java", "class B { }\n"),
    ];
    let bench = Bench::new("javac -d out -cp out *.java && java -cp out A", &files);
    bench.passes();
    fs::remove_file(bench.path("B.java")).unwrap();
    bench.fails();
}

#[test]
fn n07_a_package_whose_files_are_gone_is_not_imported() {
    if !has(&["python3"]) {
        return;
    }
    let bench =
        Bench::new("python3 -c 'import nsp.sub'", &[("nsp/sub/__init__.py", "X = 1\n"), ("keep.txt", "")]);
    bench.passes();
    fs::remove_file(bench.path("nsp/sub/__init__.py")).unwrap();
    let failed = bench.fails();
    assert!(failed.tail.iter().any(|line| line.contains("ModuleNotFoundError")), "{:?}", failed.tail);
}

#[test]
fn n08_what_was_made_in_the_future_is_not_trusted() {
    let bench = Bench::new("[ -e out ] && echo old; touch -d '2040-01-01' out", &[("a.txt", "a\n")]);
    bench.passes();
    let second = bench.passes();
    assert!(second.tail.is_empty(), "{:?}", second.tail);
    assert!(second.emptied.as_deref().is_some_and(|why| why.contains("future")), "{second:?}");
}

#[test]
fn a_changed_declaration_starts_on_an_empty_tree() {
    let mut bench = Bench::new("touch made", &[]);
    bench.passes();
    bench.declare(json!({"name": "unit", "command": "[ ! -e made ]"}));
    let result = bench.passes();
    assert!(result.run.fresh && result.emptied.is_some(), "{result:?}");
}

#[test]
fn a_fresh_test_starts_on_an_empty_tree_and_home_each_time() {
    if !sandboxes() {
        return;
    }
    let test = json!({"name": "unit", "command": "[ ! -e made ] && [ ! -e ~/made ] && touch made ~/made", "fresh": true});
    let bench = Bench::declaring(test, &[]);
    for _ in 0..2 {
        assert!(bench.passes().run.fresh);
    }
}
