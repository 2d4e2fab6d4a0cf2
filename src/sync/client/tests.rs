use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use super::*;
use crate::name::User;
use crate::plain_fossil::PlainFossil;
use crate::sync::Reach;

/// A server that answers each request by `answer`, called with the connection, the request's number from
/// 0, and its body; it ends with the test.
struct Liar {
    address: SocketAddr,
    requests: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
}

impl Liar {
    fn new(answer: impl Fn(&mut TcpStream, usize, &[u8]) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (requests, stop) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (counter, stopped) = (Arc::clone(&requests), Arc::clone(&stop));
        thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    break;
                }
                let Ok(mut stream) = stream else { break };
                stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
                if let Some(body) = request_body(&mut stream) {
                    answer(&mut stream, counter.fetch_add(1, Ordering::SeqCst), &body);
                }
            }
        });
        Self { address, requests, stop }
    }

    /// A server that always sends the same bytes and closes.
    fn saying(reply: impl Into<Vec<u8>>) -> Self {
        let reply = reply.into();
        Self::new(move |stream, _, _| drop(stream.write_all(&reply)))
    }

    fn exchange(&self, limits: Limits) -> Exchange {
        let remote = Remote::parse(&format!("http://{}/repo", self.address)).unwrap();
        let login = (User::parse("ann").unwrap(), Password::parse("hunter2").unwrap());
        Exchange::new(&remote.with_login(login.0, login.1).over(within(limits)), &Cancel::new())
    }

    fn error(&self, limits: Limits) -> Error {
        let error = self.exchange(limits).exchange(None, b"pull x y\n").unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
        assert!(error.hint().is_some_and(|hint| hint.ends_with('.')), "{error}");
        error
    }

    fn kind(&self) -> Kind {
        self.error(quick()).kind()
    }
}

impl Drop for Liar {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // Wakes the listener, which then sees that it shall stop.
        drop(TcpStream::connect(self.address));
    }
}

fn request_body(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(body)
}

fn within(limits: Limits) -> Connection {
    Connection::new(&Reach { limits, ..Reach::default() }).unwrap()
}

fn quick() -> Limits {
    Limits {
        whole: Duration::from_secs(5),
        stall: Duration::from_secs(2),
        reply_bytes: 1 << 16,
        ..Limits::default()
    }
}

fn ok(content_type: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

fn status(line: &str) -> Vec<u8> {
    let body = "<html><b>no</b> hunter2\x1b[31m</html>";
    format!("HTTP/1.1 {line}\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n{body}", body.len())
        .into_bytes()
}

#[test]
fn the_login_card_stands_before_the_body_and_the_reply_is_expanded() {
    let server = Liar::new(|stream, _, body| {
        let cards = packed::unpack(body, 1000).unwrap();
        drop(stream.write_all(&ok(COMPRESSED, &packed::pack(&cards).unwrap())));
    });
    let exchange = server.exchange(quick());
    let reply = exchange.exchange(Some(b"login ann NONCE SIG"), b"pull x y\n").unwrap();
    assert_eq!(reply, b"login ann NONCE SIG\npull x y\n");
    // The server has closed the line that was to be kept open.
    thread::sleep(Duration::from_millis(100));
    assert_eq!(exchange.exchange(None, b"pull x y\n").unwrap(), b"pull x y\n");
    assert_eq!(exchange.exchange(Some(b"a\nb"), b"").unwrap_err().kind(), Kind::Internal);
}

#[test]
fn uncompressed_and_empty_replies_are_taken() {
    let reply = |server: Liar| server.exchange(quick()).exchange(None, b"x\n");
    assert_eq!(reply(Liar::saying(ok("application/x-fossil-uncompressed", b"cards\n"))).unwrap(), b"cards\n");
    assert_eq!(reply(Liar::saying(ok("application/x-fossil; charset=x", b""))).unwrap(), b"");
    let unsized_reply = b"HTTP/1.0 200 OK\r\nContent-Type: application/x-fossil-debug\r\n\r\ncards\n";
    assert_eq!(reply(Liar::saying(unsized_reply)).unwrap(), b"cards\n");
}

#[test]
fn each_status_has_its_kind() {
    for (line, kind) in [
        ("401 Unauthorized", Kind::LoginFailed),
        ("403 Forbidden", Kind::LoginFailed),
        ("404 Not Found", Kind::Refused),
        ("413 Too Large", Kind::TooLarge),
        ("500 Oops", Kind::Refused),
        ("503 Busy", Kind::Busy),
        ("204 No Content", Kind::Refused),
        ("303 See Other", Kind::Refused),
    ] {
        let error = Liar::saying(status(line)).error(quick());
        assert_eq!(error.kind(), kind, "{line}");
        assert!(error.to_string().contains(&line[..3]) || kind == Kind::TooLarge, "{error}");
        assert!(!error.to_string().contains('\x1b'), "{error:?}");
    }
}

#[test]
fn a_web_page_is_no_fossil_server() {
    let error = Liar::saying(ok("text/html", b"<h1>Welcome</h1> here")).error(quick());
    assert_eq!(error.kind(), Kind::Refused);
    assert!(error.to_string().contains("Welcome here"), "{error}");
}

#[test]
fn odd_replies_are_errors() {
    let broken = [
        "",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Type: application/x-fossil\r\nContent-Length: 500\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\n",
    ];
    for reply in broken {
        assert_eq!(Liar::saying(reply).kind(), Kind::Unreachable, "{reply:?}");
    }
    for reply in ["x", "SSH-2.0-OpenSSH\r\n\r\n"] {
        assert!(matches!(Liar::saying(reply).kind(), Kind::Unreachable | Kind::Refused), "{reply:?}");
    }
    for body in [&b"x"[..], b"\0\0\0\x05xxxx", b"\0\0\0\x05x\x9c"] {
        assert_eq!(Liar::saying(ok(COMPRESSED, body)).kind(), Kind::Refused, "{body:?}");
    }
    let short =
        "HTTP/1.1 200 OK\r\nContent-Type: application/x-fossil\r\nContent-Length: 1\r\n\r\n\0\0\0\x05abc";
    assert_eq!(Liar::saying(short).kind(), Kind::Refused);
}

#[test]
fn replies_over_the_limit_are_refused_before_they_fill_memory() {
    let bomb = packed::pack(&vec![0; 1 << 20]).unwrap();
    assert_eq!(Liar::saying(ok(COMPRESSED, &bomb)).kind(), Kind::TooLarge);
    let lying = [&[0, 0, 0, 9][..], &bomb[4..]].concat();
    assert_eq!(Liar::saying(ok(COMPRESSED, &lying)).kind(), Kind::Refused);
    assert_eq!(Liar::saying(ok("application/x-fossil-debug", &vec![b'x'; 1 << 17])).kind(), Kind::TooLarge);
    let head = format!("HTTP/1.1 200 OK\r\nX: {}\r\n", "y".repeat(1 << 18));
    assert!(matches!(Liar::saying(head).kind(), Kind::TooLarge | Kind::Refused));
}

#[test]
fn s08_a_server_that_drips_or_stalls_ends_at_the_limit() {
    let limits = Limits { whole: Duration::from_millis(700), ..quick() };
    let drip = Liar::new(|stream, _, _| {
        let reply = ok(COMPRESSED, &[0; 100]);
        for byte in reply {
            if stream.write_all(&[byte]).is_err() {
                return;
            }
            thread::sleep(Duration::from_millis(50));
        }
    });
    assert_eq!(drip.error(limits).kind(), Kind::TimedOut);
    let silent = Liar::new(|_, _, _| thread::sleep(Duration::from_millis(1500)));
    let limits = Limits { stall: Duration::from_millis(300), ..quick() };
    let error = silent.error(limits);
    assert_eq!(error.kind(), Kind::TimedOut);
    assert!(error.to_string().contains("silent"), "{error}");
}

#[test]
fn a_cancelled_exchange_ends_at_once() {
    let silent = Liar::new(|_, _, _| thread::sleep(Duration::from_secs(3)));
    let remote = Remote::parse(&format!("http://{}/", silent.address)).unwrap();
    let cancel = Cancel::new();
    let exchange = Exchange::new(&remote, &cancel);
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(200));
            cancel.cancel();
        });
        assert_eq!(exchange.exchange(None, b"x\n").unwrap_err().kind(), Kind::Cancelled);
    });
    assert_eq!(exchange.exchange(None, b"x\n").unwrap_err().kind(), Kind::Cancelled);
}

#[test]
fn nobody_listening_is_unreachable() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let new = |url: &str| Exchange::new(&Remote::parse(url).unwrap().over(within(quick())), &Cancel::new());
    let error = new(&format!("http://{address}/")).exchange(None, b"x\n").unwrap_err();
    assert_eq!(error.kind(), Kind::Unreachable);
    let other = Liar::saying(ok(COMPRESSED, b""));
    let error = new(&format!("https://{}/", other.address)).exchange(None, b"x\n").unwrap_err();
    assert!(matches!(error.kind(), Kind::Unreachable | Kind::Untrusted | Kind::TimedOut), "{error}");
}

#[test]
fn s05_redirects_are_followed_on_the_same_server_only() {
    let other = Liar::saying(ok("application/x-fossil-debug", b"stolen\n"));
    let targets = vec![
        "file:///tmp/x".to_owned(),
        "ssh://-oProxyCommand=x".to_owned(),
        format!("http://{}/repo", other.address),
        format!("http://localhost:{}/repo", other.address.port()),
    ];
    for target in targets {
        let location = target.clone();
        let server = Liar::new(move |stream, _, _| {
            drop(write!(
                stream,
                "HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            ));
        });
        let error = server.error(quick());
        assert_eq!(error.kind(), Kind::Refused, "{target}");
        assert!(error.to_string().contains(&target), "{error}");
        assert_eq!(server.requests.load(Ordering::SeqCst), 1);
    }
    assert_eq!(other.requests.load(Ordering::SeqCst), 0);
    let same = Liar::new(|stream, number, body| {
        let reply = match number {
            0 => {
                b"HTTP/1.1 307 Go\r\nLocation: /there/xfer\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                    .to_vec()
            }
            _ => ok(COMPRESSED, body),
        };
        drop(stream.write_all(&reply));
    });
    assert_eq!(same.exchange(quick()).exchange(None, b"cards\n").unwrap(), b"cards\n");
    let circle =
        Liar::saying("HTTP/1.1 302 Go\r\nLocation: /repo\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    assert_eq!(circle.kind(), Kind::Refused);
    assert_eq!(circle.requests.load(Ordering::SeqCst), MAX_REDIRECTS + 1);
}

/// A server process that ends with the test.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn plain_fossils_server_answers_in_cards() {
    let fossil = PlainFossil::new();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let repository = fossil.repository();
    let mut command = fossil.command(["server", "--localhost", "--port", &port.to_string()]);
    let server = command.arg(&repository).stdout(std::process::Stdio::null()).spawn().unwrap();
    let _served = Served(server);
    let end = Instant::now() + Duration::from_mins(3);
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(Instant::now() < end, "the server does not start");
        thread::sleep(Duration::from_millis(50));
    }
    let remote = Remote::parse(&format!("http://127.0.0.1:{port}/")).unwrap();
    let exchange = Exchange::new(&remote, &Cancel::new());
    let cards = |login: Option<&[u8]>, body: &str| {
        String::from_utf8(exchange.exchange(login, body.as_bytes()).unwrap()).unwrap()
    };
    let error = |reply: &str| reply.lines().find_map(|line| line.strip_prefix("error ")).map(str::to_owned);
    let zeros = "0".repeat(40);
    let reply = cards(None, &format!("pull {zeros} {zeros}\n"));
    assert!(error(&reply).unwrap().starts_with("wrong\\sproject"), "{reply}");
    let code = fossil.sql("SELECT value FROM config WHERE name='project-code'").remove(0);
    let pull = format!("pull {zeros} {code}\n# {zeros}\n");
    let nonce = sha1(pull.as_bytes());
    let login = format!("login ann {nonce} {zeros}");
    assert_eq!(error(&cards(Some(login.as_bytes()), &pull)).as_deref(), Some("login\\sfailed"));
    fossil.run(["user", "password", "ann", "hunter2"]);
    let secret = sha1(format!("{code}/ann/hunter2").as_bytes());
    let login = format!("login ann {nonce} {}", sha1(format!("{nonce}{secret}").as_bytes()));
    let reply = cards(Some(login.as_bytes()), &pull);
    assert!(error(&reply).is_none() && reply.contains("igot "), "{reply}");
}

fn sha1(bytes: &[u8]) -> String {
    use sha1::Digest;
    crate::name::Hash::from_digest(&sha1::Sha1::digest(bytes)).to_string()
}
