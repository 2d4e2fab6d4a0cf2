//! A server of a repository, and a clone of the repository to work in.

use std::net::TcpListener;
use std::process::{Child, Stdio};

use ocx::process::Supervisor;
use ocx::tool::{CallControl, Service};
use serde_json::{Value, json};

use super::{Fixture, OCX, until};

/// A plain Fossil server of a fixture's repository, and a clone of the repository. `agent` works in the clone.
pub struct Served {
    pub server_side: Fixture,
    pub port: u16,
    server: Option<Child>,
    pub session: Service,
}

const CAPABILITIES: &str = "gio";

impl Served {
    pub fn new() -> Self {
        let f = Fixture::with(&[("a.txt", b"a\n")]);
        f.fossil(&["user", "new", "agent", "agent", "s3cret"]);
        f.fossil(&["user", "capabilities", "agent", CAPABILITIES]);
        let port = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port").port();
        let session = Service::with_supervisor(f.folder().join("work"), Supervisor::at(OCX));
        let mut served = Self { server_side: f, port, server: None, session };
        served.start();
        let url = format!("http://agent:s3cret@127.0.0.1:{port}/");
        let f = &served.server_side;
        f.ocx(f.folder(), &["clone", &url, "clone.fossil", "--save-password"]);
        f.ocx(f.folder(), &["open", "clone.fossil", "work", "--user", "agent"]);
        served
    }

    pub fn start(&mut self) {
        let f = &self.server_side;
        let port = self.port.to_string();
        let mut command = f.plain(f.folder());
        command.args(["server", "r.fossil", "--localhost", "--port", &port]);
        self.server = Some(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a server"));
        until("the server listens", || std::net::TcpStream::connect(("127.0.0.1", self.port)).is_ok());
    }

    pub fn stop(&mut self) {
        if let Some(mut server) = self.server.take() {
            let _ = server.kill();
            let _ = server.wait();
        }
    }

    pub fn call(&self, tool: &str, input: Value) -> Value {
        super::answer::call(&self.session, tool, input)
    }

    pub fn edit(&self, old: &str, new: &str) {
        let answer = self.call("ocx_edit", json!({"path": "a.txt", "old": old, "new": new}));
        assert_eq!(answer["ok"], true, "{answer:#}");
    }

    /// The check-ins by `agent` that the server's own repository holds.
    pub fn on_server(&self) -> Vec<(String, String)> {
        let db = rusqlite::Connection::open(self.server_side.repository()).expect("a repository");
        let sql = "SELECT uuid, comment FROM event JOIN blob ON rid=objid WHERE type='ci' AND user='agent' ORDER BY mtime";
        let mut rows = db.prepare(sql).expect("a query");
        let rows = rows.query_map([], |r| Ok((r.get(0)?, r.get(1)?))).expect("rows");
        rows.collect::<Result<_, _>>().expect("rows")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop();
    }
}
