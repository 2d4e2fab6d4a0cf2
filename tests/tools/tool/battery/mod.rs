//! What weak models get wrong, and whether following the answers mechanically still brings them to what they wanted.
//!
//! A follower knows nothing: it makes `next_call` as it stands, and after a call of another tool that went well it makes
//! its own call again. It has two calls beyond the first.

mod mistakes;

use serde_json::{Value, json};

use crate::support::{Fixture, four};
use mistakes::{Goal, Mistake};

/// The calls that a follower has beyond the first.
const MORE_CALLS: usize = 2;

/// The files that every mistake begins with.
const FILES: [(&str, &str); 17] = [
    ("README.md", "# Project\n\nSome words.\n"),
    ("notes.txt", "one\ntwo\nthree\n"),
    ("src/main.c", "int main(void) {\n\tif (x < 1 && y) {\n\t\tputs(\"hello\");\n\t}\n\treturn 0;\n}\n"),
    ("src/util.py", "def f(x):\n    if x:\n        return 1\n    return 2\n"),
    ("crlf.txt", "alpha\r\nbeta\r\ngamma\r\n"),
    ("mixed.txt", "a\nb\r\nc\r\nd\n"),
    ("quotes.md", "He said \"yes\" - and it's fine.\n"),
    ("curly.md", "He said \u{201c}no\u{201d}.\n"),
    ("cafe.txt", "caf\u{e9} au lait\n"),
    ("trail.txt", "key: value  \nnext\n"),
    ("nbsp.txt", "a\u{a0}b\n"),
    ("twice.txt", "x = 1\ny = 2\nx = 1\n"),
    ("bom.txt", "\u{feff}first\nsecond\n"),
    ("open.txt", "last"),
    ("docs/Guide.md", "Read me.\n"),
    ("src/deep/er/only_here.rs", "fn only() {}\n"),
    ("data.json", "{\n  \"a\": 1,\n  \"b\": [1, 2]\n}\n"),
];

/// A checkout with the files, a wiki page, an unversioned file, a thread, and another's check-in to judge.
struct Place {
    f: Fixture,
    check_in: String,
    post: String,
}

impl Place {
    fn new() -> Self {
        let files: Vec<(&str, &[u8])> = FILES.iter().map(|(p, c)| (*p, c.as_bytes())).collect();
        let f = Fixture::tested("true", &files);
        f.write("../page.md", "# Build\n\nmake it\n");
        f.fossil(&["wiki", "create", "How to build", "../page.md", "-M", "text/x-markdown"]);
        f.write("../blob.bin", "bytes\n");
        f.fossil(&["uv", "add", "../blob.bin", "--as", "blob.bin"]);
        let repository = ocx::repo::Repository::open(&f.repository()).expect("a repository");
        let user = |name| ocx::name::User::parse(name).expect("a user");
        let forum = ocx::record::Forum::of(&repository);
        let thread = forum.start("Plan", "Begin.", ocx::format::Markup::Markdown, &user("alice"));
        f.fossil(&["user", "capabilities", "alice", "sy"]);
        f.fossil(&["user", "new", "bob", "bob", "pw"]);
        f.write("bob.txt", "bob\n");
        f.fossil(&["add", "bob.txt"]);
        f.fossil(&["commit", "-m", "bob's", "--no-warnings", "--user-override", "bob", "--branch", "side"]);
        let check_in =
            f.done("ocx_context", json!({}))["parent"]["checkin"].as_str().expect("a hash").to_owned();
        f.fossil(&["update", "trunk"]);
        Self { f, check_in, post: thread.expect("a thread").hash.to_string() }
    }

    /// The files as at first.
    fn reset(&self) {
        for (path, content) in FILES {
            self.f.write(path, content);
        }
    }

    /// An input with what only this place knows.
    fn filled(&self, input: &Value) -> Value {
        let root = self.f.root();
        let text = input.to_string();
        let text = text.replace("{ROOT}", root.to_str().expect("text"));
        let text = text.replace("{CHECKIN}", &self.check_in).replace("{SHORT}", &self.check_in[..12]);
        let text = text.replace("{POST}", &self.post).replace("{SHORT_POST}", &self.post[..12]);
        serde_json::from_str(&text).expect("JSON")
    }

    fn reached(&self, goal: &Goal, answers: &[Value]) -> bool {
        let last = answers.last().expect("an answer");
        let done = last["ok"] == true;
        match goal {
            Goal::File(path, content) => {
                std::fs::read(self.f.path(path)).is_ok_and(|found| found == content.as_bytes())
            }
            Goal::Answer(tool, pointer, wanted) => {
                let found = last["result"].pointer(pointer).unwrap_or(&Value::Null);
                let found = found.as_str().map_or_else(|| found.to_string(), str::to_owned);
                done && last["tool"] == *tool
                    && found.contains(self.filled(&json!(wanted)).as_str().expect("text"))
            }
            Goal::Saved(comment) => {
                let saved = last["result"]["checkin"].as_str().filter(|_| done);
                saved.is_some_and(|hash| {
                    let told = self.f.done("ocx_read", json!({"checkin": hash}));
                    told["comment"] == *comment
                })
            }
        }
    }

    /// Makes the mistake and follows what the answers say; the answers, and whether the goal was reached.
    fn follow(&self, mistake: &Mistake) -> (Vec<Value>, bool) {
        self.reset();
        if let Some(before) = &mistake.before {
            self.f.write(before.0, before.1);
        }
        if mistake.tested {
            self.f.done("ocx_test", json!({}));
        }
        let own = (mistake.tool.to_owned(), self.filled(&mistake.input));
        let mut answers = vec![self.f.call(&own.0, own.1.clone())];
        while !self.reached(&mistake.goal, &answers) && answers.len() <= MORE_CALLS {
            let last = answers.last().expect("an answer");
            let (tool, input) = match (last["ok"] == true, last.get("next_call").filter(|c| c.is_object())) {
                (false, Some(next)) => {
                    (next["tool"].as_str().expect("a tool").to_owned(), next["arguments"].clone())
                }
                (true, _) if last["tool"] != own.0.as_str() => own.clone(),
                _ => break,
            };
            answers.push(self.f.call(&tool, input));
        }
        let reached = self.reached(&mistake.goal, &answers);
        (answers, reached)
    }
}

/// Every next call of an answer is one that its tool takes.
fn valid(answer: &Value) -> bool {
    let Some(next) = answer.get("next_call").filter(|next| next.is_object()) else { return true };
    let tool = ocx::tool::catalogue::find(next["tool"].as_str().unwrap_or_default());
    tool.is_some_and(|t| ocx::tool::Input::fits(t.declaration(), &next["arguments"]).is_ok())
}

#[test]
fn weak_models_that_follow_the_answers_reach_what_they_wanted() {
    let place = Place::new();
    let mistakes = mistakes::all();
    let (mut reached, mut knowable, mut wrong) = (0, 0, Vec::new());
    for mistake in &mistakes {
        let (answers, got_there) = place.follow(mistake);
        assert!(answers.iter().all(valid), "{}: {answers:#?}", mistake.name);
        reached += usize::from(got_there);
        knowable += usize::from(mistake.knowable);
        if got_there != mistake.knowable {
            wrong.push(format!("{}: {}", mistake.name, json!(answers)));
        }
        if !got_there {
            let step = answers.last().expect("an answer")["next_step"].as_str();
            let told = answers.iter().any(|a| a["ok"] == true) || step.is_some_and(|s| s.ends_with('.'));
            assert!(told, "{}: who can't be led on is told what to do: {answers:#?}", mistake.name);
        }
    }
    println!("battery: {reached} of {} mistakes end well; {knowable} can be known", mistakes.len());
    assert!(mistakes.len() >= 60);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_mistake_in_a_save_leads_to_one_check_in() {
    let place = Place::new();
    place.f.write("notes.txt", "changed\n");
    let before = place.f.check_ins();
    let answer = place.f.call("ocx_save", four("Change the notes"));
    assert_eq!((&answer["code"], &answer["next_call"]["tool"]), (&json!("untested"), &json!("ocx_test")));
    place.f.done("ocx_test", answer["next_call"]["arguments"].clone());
    place.f.done("ocx_save", four("Change the notes"));
    assert_eq!(place.f.check_ins(), before + 1);
}
