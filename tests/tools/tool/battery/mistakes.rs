//! The mistakes, each with the call that a model makes and what it wanted.

use serde_json::{Value, json};

/// What a model wanted.
pub enum Goal {
    /// A file with this content.
    File(&'static str, &'static str),
    /// A good answer of this tool, with this text at this place in its result.
    Answer(&'static str, &'static str, &'static str),
    /// A check-in with this comment.
    Saved(&'static str),
}

/// One mistake.
pub struct Mistake {
    pub name: &'static str,
    pub tool: &'static str,
    pub input: Value,
    pub goal: Goal,
    /// Whether the answer can know what was meant.
    pub knowable: bool,
    /// A file that is changed before.
    pub before: Option<(&'static str, &'static str)>,
    /// Whether the tests pass before.
    pub tested: bool,
}

/// Every mistake.
pub fn all() -> Vec<Mistake> {
    let mut all = edits();
    all.extend(paths());
    all.extend(fields());
    all.extend(tools());
    all.extend(saves());
    all.extend(records());
    all
}

fn mistake(name: &'static str, tool: &'static str, input: Value, goal: Goal) -> Mistake {
    Mistake { name, tool, input, goal, knowable: true, before: None, tested: false }
}

/// A mistake after which nothing but the model can tell what it wanted.
fn unknowable(name: &'static str, tool: &'static str, input: Value, goal: Goal) -> Mistake {
    Mistake { knowable: false, ..mistake(name, tool, input, goal) }
}

fn edit(
    name: &'static str,
    (path, after): (&'static str, &'static str),
    (old, new): (&'static str, &'static str),
) -> Mistake {
    mistake(name, "ocx_edit", json!({"path": path, "old": old, "new": new}), Goal::File(path, after))
}

fn read(name: &'static str, input: Value, text: &'static str) -> Mistake {
    mistake(name, "ocx_read", input, Goal::Answer("ocx_read", "/text", text))
}

const MAIN_AFTER: &str = "int main(void) {\n\tif (x < 1 && y) {\n\t\tputs(\"bye\");\n\t}\n\treturn 0;\n}\n";
const UTIL_AFTER: &str = "def f(x):\n    if x:\n        return 7\n    return 2\n";
const NOTES_AFTER: &str = "one\n2\nthree\n";

/// The passage is not what stands in the file.
fn edits() -> Vec<Mistake> {
    let (notes, main, util) =
        (("notes.txt", NOTES_AFTER), ("src/main.c", MAIN_AFTER), ("src/util.py", UTIL_AFTER));
    let whole = "one\n2\n3\n";
    vec![
        edit("line numbers with a colon", notes, ("2: two", "2: 2")),
        edit("line numbers as cat -n shows them", notes, ("     2\ttwo\n", "     2\t2\n")),
        edit("line numbers with an arrow", notes, ("2\u{2192}two", "2\u{2192}2")),
        edit("line numbers in `old` only", ("notes.txt", whole), ("2: two\n3: three\n", "2\n3\n")),
        edit("line numbers with a bar", notes, ("2 | two", "2 | 2")),
        edit("LF for a file of CR LF", ("crlf.txt", "A\r\nB\r\ngamma\r\n"), ("alpha\nbeta\n", "A\nB\n")),
        edit("CR LF for a file of LF", ("notes.txt", "1\n2\nthree\n"), ("one\r\ntwo\r\n", "1\r\n2\r\n")),
        edit(
            "LF for lines of CR LF in a mixed file",
            ("mixed.txt", "a\nB\r\nC\r\nd\n"),
            ("b\nc\n", "B\nC\n"),
        ),
        edit("spaces for tabs", main, ("        puts(\"hello\");", "        puts(\"bye\");")),
        edit(
            "four spaces for each tab",
            main,
            (
                "    if (x < 1 && y) {\n        puts(\"hello\");",
                "    if (x < 1 && y) {\n        puts(\"bye\");",
            ),
        ),
        edit("tabs for spaces", util, ("\tif x:\n\t\treturn 1\n", "\tif x:\n\t\treturn 7\n")),
        edit("two spaces for four", util, ("  if x:\n    return 1\n", "  if x:\n    return 7\n")),
        edit("no indent on the first line", util, ("if x:\n    return 1\n", "if x:\n    return 7\n")),
        edit(
            "curly quotes for straight ones",
            ("quotes.md", "He said \"no\" - and it's fine.\n"),
            ("said \u{201c}yes\u{201d}", "said \u{201c}no\u{201d}"),
        ),
        edit(
            "a curly apostrophe and a dash",
            ("quotes.md", "He said \"yes\" - and it's bad.\n"),
            ("\u{2014} and it\u{2019}s fine", "\u{2014} and it\u{2019}s bad"),
        ),
        edit("straight quotes for curly ones", ("curly.md", "He nodded.\n"), ("said \"no\".", "nodded.")),
        edit("a plain space for a no-break space", ("nbsp.txt", "c\n"), ("a b", "c")),
        edit(
            "a no-break space for a plain one",
            ("cafe.txt", "tea\n"),
            ("caf\u{e9}\u{a0}au\u{a0}lait", "tea"),
        ),
        edit("decomposed letters", ("cafe.txt", "tea au lait\n"), ("cafe\u{301}", "tea")),
        edit(
            "no space at the end of a line",
            ("trail.txt", "key: 2\nnext\n"),
            ("key: value\nnext", "key: 2\nnext"),
        ),
        edit("space at the end of a line", notes, ("two  \nthree", "2\nthree")),
        edit("line ends escaped twice", ("notes.txt", "1\n2\nthree\n"), ("one\\ntwo", "1\\n2")),
        edit("quotes escaped twice", main, ("puts(\\\"hello\\\");", "puts(\\\"bye\\\");")),
        edit("wrong case", ("docs/Guide.md", "Read it.\n"), ("read ME.", "Read it.")),
        edit("a fence of Markdown around it", notes, ("```\ntwo\n```", "```\n2\n```")),
        edit("a fence with a language", notes, ("```text\ntwo\n```\n", "```text\n2\n```\n")),
        edit("the signs of a diff", notes, ("-two\n", "+2\n")),
        edit("a diff with its context", notes, (" one\n-two\n three\n", " one\n+2\n three\n")),
        edit(
            "escaped as HTML",
            ("src/main.c", "int main(void) {\n\tif (z) {\n\t\tputs(\"hello\");\n\t}\n\treturn 0;\n}\n"),
            ("x &lt; 1 &amp;&amp; y", "z"),
        ),
        edit("empty lines around it", notes, ("\n\ntwo\n\n", "\n\n2\n\n")),
        edit("a file with a byte order mark", ("bom.txt", "\u{feff}1st\nsecond\n"), ("first", "1st")),
        edit(
            "several spaces for one",
            ("data.json", "{\n  \"a\": 2,\n  \"b\": [1, 2]\n}\n"),
            ("\"a\":  1", "\"a\": 2"),
        ),
        edit("an end that the last line has not", ("open.txt", "first"), ("last\n", "first\n")),
        edit("a passage in two places", ("twice.txt", "x = 9\ny = 2\nx = 1\n"), ("x = 1", "x = 9")).unknown(),
        edit("a passage from memory", main, ("printf(\"hello\");", "puts(\"bye\");")).unknown(),
        edit(
            "an ellipsis for what lies between",
            util,
            ("def f(x):\n...\n    return 2", "def f(x): return 7"),
        )
        .unknown(),
        edit("the same text twice", notes, ("two", "two")).unknown(),
    ]
}

/// The path is not one of the checkout.
fn paths() -> Vec<Mistake> {
    let reads = |name, path: &str| read(name, json!({"path": path}), "two");
    let main = |name, path: &str| read(name, json!({"path": path}), "puts");
    vec![
        reads("a path with ./", "./notes.txt"),
        reads("a leading slash", "/notes.txt"),
        reads("an absolute path", "{ROOT}/notes.txt"),
        reads("a URL of a file", "file://{ROOT}/notes.txt"),
        main("backslashes", "src\\main.c"),
        main("two slashes", "src//main.c"),
        reads("a way round", "src/../notes.txt"),
        reads("a line number after it", "notes.txt:2"),
        reads("a link to a line", "notes.txt#L2"),
        reads("the prefix of a diff", "a/notes.txt"),
        main("the name of the checkout's folder before it", "co/src/main.c"),
        main("the wrong folder", "lib/main.c"),
        main("no folder", "main.c"),
        reads("wrong case", "NOTES.TXT"),
        reads("a wrong letter", "note.txt"),
        reads("a slash at the end", "notes.txt/"),
        reads("backticks around it", "`notes.txt`"),
        reads("spaces around it", " notes.txt "),
        read("a file deep down by its name", json!({"path": "only_here.rs"}), "fn only"),
        read("a folder for a file", json!({"path": "docs"}), "Read me").unknown(),
        read("an example for a value", json!({"path": "path/to/file"}), "two").unknown(),
        mistake(
            "an edit with ./",
            "ocx_edit",
            json!({"path": "./notes.txt", "old": "two", "new": "2"}),
            Goal::File("notes.txt", NOTES_AFTER),
        ),
        mistake(
            "an edit by the name alone",
            "ocx_edit",
            json!({"path": "main.c", "old": "hello", "new": "bye"}),
            Goal::File("src/main.c", MAIN_AFTER),
        ),
        mistake(
            "a new file with ./",
            "ocx_edit",
            json!({"path": "./docs/new.md", "old": "", "new": "new\n"}),
            Goal::File("docs/new.md", "new\n"),
        ),
        unknowable(
            "an edit of a file that there is not",
            "ocx_edit",
            json!({"path": "zebra.xyz", "old": "stripe", "new": "spot"}),
            Goal::File("zebra.xyz", "spot"),
        ),
    ]
}

/// A field has another name or another type.
fn fields() -> Vec<Mistake> {
    let edits = |name, input: Value| mistake(name, "ocx_edit", input, Goal::File("notes.txt", NOTES_AFTER));
    let finds = |name, input: Value| {
        mistake(name, "ocx_find", input, Goal::Answer("ocx_find", "/matches/0/path", "src/main.c"))
    };
    vec![
        read("file_path", json!({"file_path": "notes.txt"}), "two"),
        read("filename", json!({"filename": "notes.txt"}), "two"),
        read("a line as text", json!({"path": "notes.txt", "from": "2"}), "two"),
        read("line 0", json!({"path": "notes.txt", "from": 0}), "two"),
        read("a line by another name", json!({"path": "notes.txt", "start_line": 2, "end_line": 3}), "two"),
        read("a line as 2.0", json!({"path": "notes.txt", "from": 2.0}), "two"),
        read("null for what is left out", json!({"path": "notes.txt", "checkin": null, "from": null}), "two"),
        read("a field that there is not", json!({"path": "notes.txt", "explanation": "to see it"}), "two"),
        read("a flag as text", json!({"path": "notes.txt", "dry_run": "false"}), "two"),
        read("input within arguments", json!({"arguments": {"path": "notes.txt"}}), "two"),
        read("JSON in a string", json!("{\"path\": \"notes.txt\"}"), "two"),
        read("JSON in a string within input", json!({"input": "{\"path\": \"notes.txt\"}"}), "two"),
        read("past the end", json!({"path": "notes.txt", "from": 400}), "two"),
        read("another case of a field", json!({"Path": "notes.txt"}), "two"),
        edits(
            "old_string and new_string",
            json!({"path": "notes.txt", "old_string": "two", "new_string": "2"}),
        ),
        edits("old_str and new_str", json!({"file": "notes.txt", "old_str": "two", "new_str": "2"})),
        edits("search and replace", json!({"path": "notes.txt", "search": "two", "replace": "2"})),
        edits("a number for a text", json!({"path": "notes.txt", "old": "two", "new": 2})),
        edits("lines as a list", json!({"path": "notes.txt", "old": ["two"], "new": ["2"]})),
        edits("replace_all", json!({"path": "notes.txt", "old": "two", "new": "2", "replace_all": true})),
        mistake(
            "a new file by path and content",
            "ocx_edit",
            json!({"path": "fresh.txt", "content": "hello\n"}),
            Goal::File("fresh.txt", "hello\n"),
        ),
        unknowable(
            "a whole file written over another",
            "ocx_edit",
            json!({"path": "notes.txt", "content": NOTES_AFTER}),
            Goal::File("notes.txt", NOTES_AFTER),
        ),
        finds("query", json!({"query": "puts"})),
        finds("pattern, and a flag that there is not", json!({"pattern": "puts", "case_sensitive": true})),
        finds("the whole checkout as .", json!({"text": "puts", "path": "."})),
        finds("a folder with ./", json!({"text": "puts", "path": "./src"})),
        finds("a folder between slashes", json!({"text": "puts", "path": "/src/"})),
        finds("a folder that there is not", json!({"text": "puts", "path": "source"})),
        mistake(
            "a pattern for a text",
            "ocx_find",
            json!({"text": "pu.s\\("}),
            Goal::Answer("ocx_find", "/matches/0/path", "src/main.c"),
        )
        .unknown(),
        mistake(
            "a test that there is not",
            "ocx_test",
            json!({"name": "all"}),
            Goal::Answer("ocx_test", "/tests/0/passed", "true"),
        ),
        mistake(
            "a wrong letter in a test",
            "ocx_test",
            json!({"name": "unti"}),
            Goal::Answer("ocx_test", "/tests/0/passed", "true"),
        ),
        mistake(
            "tests as a list",
            "ocx_test",
            json!({"tests": ["unit"]}),
            Goal::Answer("ocx_test", "/tests/0/passed", "true"),
        ),
    ]
}

/// The tool has another name.
fn tools() -> Vec<Mistake> {
    let reads = |name: &'static str| {
        mistake(name, name, json!({"path": "notes.txt"}), Goal::Answer("ocx_read", "/text", "two"))
    };
    vec![
        reads("ocx.read"),
        reads("ocx-read"),
        reads("OCX_READ"),
        reads("read"),
        reads("Read"),
        reads("read_file"),
        reads("mcp__ocx__ocx_read"),
        reads("ocx:read"),
        reads("cat"),
        mistake(
            "grep",
            "grep",
            json!({"pattern": "puts"}),
            Goal::Answer("ocx_find", "/matches/0/path", "src/main.c"),
        ),
        mistake(
            "str_replace",
            "str_replace",
            json!({"path": "notes.txt", "old_str": "two", "new_str": "2"}),
            Goal::File("notes.txt", NOTES_AFTER),
        ),
        mistake("run_tests", "run_tests", json!({}), Goal::Answer("ocx_test", "/tests/0/passed", "true")),
        mistake("list_files", "list_files", json!({}), Goal::Answer("ocx_context", "/top", "notes.txt")),
        unknowable(
            "bash",
            "bash",
            json!({"command": "cat notes.txt"}),
            Goal::Answer("ocx_read", "/text", "two"),
        ),
    ]
}

const COMMENT: &str = "Change it\nIntent: why\nExpression: notes.txt\nDemonstrates: unit";

/// What comes before a save, and its four lines.
fn saves() -> Vec<Mistake> {
    let save = |name, content: &'static str, input: Value| Mistake {
        before: Some(("notes.txt", content)),
        tested: true,
        ..mistake(name, "ocx_save", input, Goal::Saved(COMMENT))
    };
    let four = |title: &str| json!({"title": title, "intent": "why", "expression": "notes.txt", "demonstrates": "unit"});
    vec![
        Mistake { tested: false, ..save("before the tests ran", "first\n", four("Change it")) },
        save(
            "a label given too",
            "second\n",
            json!({"title": "Change it", "intent": "Intent: why", "expression": "Expression: notes.txt", "demonstrates": "demonstrates: unit"}),
        ),
        save(
            "parts over several lines",
            "third\n",
            json!({"title": "Change\nit", "intent": "why\n", "expression": "notes.txt", "demonstrates": "unit"}),
        ),
        save("the whole comment as the title", "fourth\n", json!({"title": COMMENT})),
        save("the whole comment as a message", "fifth\n", json!({"message": COMMENT})),
        save(
            "parts as lists",
            "sixth\n",
            json!({"title": ["Change it"], "intent": ["why"], "expression": ["notes.txt"], "demonstrates": ["unit"]}),
        ),
        save(
            "other fields too",
            "seventh\n",
            json!({"title": "Change it", "intent": "why", "expression": "notes.txt", "demonstrates": "unit", "branch": "trunk", "push": true}),
        ),
        Mistake { tool: "commit", ..save("by another name", "eighth\n", four("Change it")) },
        Mistake { knowable: false, ..save("a title alone", "ninth\n", json!({"title": "Change it"})) },
    ]
}

/// Wiki, unversioned files, forum, audits and check-ins.
fn records() -> Vec<Mistake> {
    let page = |name, input: Value| {
        mistake(name, "ocx_wiki_read", input, Goal::Answer("ocx_wiki_read", "/text", "make it"))
    };
    let put = |name, file: &'static str, content: &'static str, hash: &'static str| {
        let input = json!({"name": file, "content": content});
        mistake(name, "ocx_unversioned_put", input, Goal::Answer("ocx_unversioned_put", "/hash", hash))
    };
    // SHA3-256 of "hello world\n".
    let hello = "a8009a7a528d87778c356da3a55d964719e818666a04e4f960c9e2439e35f138";
    vec![
        page("a page in another case", json!({"page": "how to build"})),
        page("a page as in a URL", json!({"page": "How_to_build"})),
        page("a page by its title", json!({"title": "How to build"})),
        mistake(
            "a wiki edit with a curly quote's sibling, wrong case",
            "ocx_wiki_edit",
            json!({"page": "How to build", "old": "Make It", "new": "make it so"}),
            Goal::Answer("ocx_wiki_edit", "/text", "make it so"),
        ),
        mistake(
            "an unversioned file with ./",
            "ocx_unversioned_get",
            json!({"name": "./blob.bin"}),
            Goal::Answer("ocx_unversioned_get", "/content", "Ynl0ZXMK"),
        ),
        put("base64 in lines", "a.bin", "aGVsbG8g\nd29ybGQK\n", hello),
        put("base64 as a data URL", "b.bin", "data:text/plain;base64,aGVsbG8gd29ybGQK", hello),
        put("base64 without its padding, with `-`", "c.bin", "-_-_YQ", ""),
        put("plain text", "d.bin", "hello, world!\n", ""),
        mistake(
            "a short hash in an audit",
            "ocx_audit",
            json!({"checkin": "{SHORT}", "verdict": "pass", "note": "fine"}),
            Goal::Answer("ocx_audit", "/checkin", "{CHECKIN}"),
        ),
        mistake(
            "a post's short hash",
            "ocx_post",
            json!({"to": "{SHORT_POST}", "text": "Agreed."}),
            Goal::Answer("ocx_post", "/reply_to", "{POST}"),
        ),
        mistake(
            "a reply by other field names",
            "ocx_post",
            json!({"reply_to": "{POST}", "message": "Agreed too."}),
            Goal::Answer("ocx_post", "/reply_to", "{POST}"),
        ),
        unknowable(
            "a branch for a hash in an audit",
            "ocx_audit",
            json!({"checkin": "side", "verdict": "fail", "note": "not yet"}),
            Goal::Answer("ocx_audit", "/verdict", "fail"),
        ),
        read("a short hash of a check-in", json!({"checkin": "{SHORT}", "path": "bob.txt"}), "bob"),
        read("a check-in by another name", json!({"commit": "side", "path": "bob.txt"}), "bob"),
        read("a check-in in capitals", json!({"checkin": "SIDE", "path": "bob.txt"}), "bob"),
    ]
}

impl Mistake {
    /// The same, where nothing but the model can tell what it wanted.
    fn unknown(self) -> Self {
        Self { knowable: false, ..self }
    }
}
