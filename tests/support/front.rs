//! What stands before a server: a front that keeps lines open, with or without TLS, or a proxy.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// The test's own certificate authority.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub pem: String,
}

impl Authority {
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, format!("authority {name}"));
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// The TLS configuration of a server of that name. Its certificate is valid from and to these years.
    pub fn server(&self, name: &str, from: i32, to: i32) -> Arc<ServerConfig> {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.not_before = date_time_ymd(from, 1, 1);
        params.not_after = date_time_ymd(to, 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        Arc::new(config)
    }
}

/// How many lines and requests came, and whether the front must stop.
#[derive(Default)]
pub struct Counted {
    pub lines: AtomicUsize,
    pub requests: AtomicUsize,
    stopped: AtomicBool,
}

/// A listener on loopback. Each line has a thread of its own that serves it. The listener stops when this is dropped.
pub struct Front {
    pub port: u16,
    pub counted: Arc<Counted>,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Front {
    pub fn new(serve: impl Fn(TcpStream, &Counted) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (counted, serve) = (Arc::new(Counted::default()), Arc::new(serve));
        let open: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let (count, lines) = (Arc::clone(&counted), Arc::clone(&open));
        thread::spawn(move || {
            for line in listener.incoming().flatten() {
                if count.stopped.load(Ordering::SeqCst) {
                    break;
                }
                count.lines.fetch_add(1, Ordering::SeqCst);
                line.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
                lines.lock().unwrap().extend(line.try_clone());
                let (count, serve) = (Arc::clone(&count), Arc::clone(&serve));
                thread::spawn(move || {
                    let end = line.try_clone();
                    serve(line, &count);
                    // Without this, the other copies of the line would keep it open.
                    let _ = end.map(|line| line.shutdown(std::net::Shutdown::Both));
                });
            }
        });
        Self { port, counted, open }
    }

    /// A front that passes requests on to the server at a port, and keeps the client's line open.
    pub fn before(server: u16) -> Self {
        Self::new(move |line, count| keep(line, server, count))
    }

    /// Like [`before`](Self::before), over TLS.
    pub fn secure(server: u16, config: Arc<ServerConfig>) -> Self {
        Self::new(move |line, count| {
            let Ok(tls) = ServerConnection::new(Arc::clone(&config)) else { return };
            keep(StreamOwned::new(tls, line), server, count);
        })
    }

    /// A proxy that accepts `CONNECT` with these credentials.
    pub fn proxy(credentials: &'static str) -> Self {
        Self::new(move |mut line, count| {
            let Some(head) = head(&mut line) else { return };
            count.requests.fetch_add(1, Ordering::SeqCst);
            let text = String::from_utf8_lossy(&head).into_owned();
            if !text.contains(credentials) {
                let _ = line.write_all(b"HTTP/1.1 407 Who are you\r\nContent-Length: 0\r\n\r\n");
                return;
            }
            let target = text.split(' ').nth(1).unwrap_or_default().to_owned();
            let Ok(server) = TcpStream::connect(target) else { return };
            line.write_all(b"HTTP/1.1 200 Go on\r\n\r\n").unwrap();
            let (mut from, mut to) = (server.try_clone().unwrap(), line.try_clone().unwrap());
            let back = thread::spawn(move || {
                let _ = std::io::copy(&mut from, &mut to);
                let _ = to.shutdown(std::net::Shutdown::Both);
            });
            let _ = std::io::copy(&mut line, &mut &server);
            let _ = server.shutdown(std::net::Shutdown::Both);
            back.join().unwrap();
        })
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn lines(&self) -> usize {
        self.counted.lines.load(Ordering::SeqCst)
    }

    pub fn requests(&self) -> usize {
        self.counted.requests.load(Ordering::SeqCst)
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.counted.stopped.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        for line in self.open.lock().unwrap().iter() {
            let _ = line.shutdown(std::net::Shutdown::Both);
        }
    }
}

fn keep(mut line: impl Read + Write, server: u16, count: &Counted) {
    while let Some(request) = request(&mut line) {
        count.requests.fetch_add(1, Ordering::SeqCst);
        let reply = ask(server, &request);
        let Some(end) = reply.windows(4).position(|w| w == b"\r\n\r\n") else { return };
        let head = String::from_utf8_lossy(&reply[..end]);
        let kept = head.lines().filter(|l| !l.to_lowercase().starts_with("connection:"));
        let head = kept.collect::<Vec<_>>().join("\r\n").replacen("HTTP/1.0", "HTTP/1.1", 1);
        let reply = [head.as_bytes(), &reply[end..]].concat();
        if line.write_all(&reply).and_then(|()| line.flush()).is_err() {
            return;
        }
    }
}

/// The server's whole reply to one request, until the server closes the line.
pub fn ask(server: u16, request: &[u8]) -> Vec<u8> {
    let mut reply = Vec::new();
    // The test and its server may have ended.
    let Ok(mut to) = TcpStream::connect(("127.0.0.1", server)) else { return reply };
    let _ = to.write_all(request);
    let _ = to.read_to_end(&mut reply);
    reply
}

/// The bytes up to the empty line, including it. Returns nothing if the line has ended.
fn head(line: &mut impl Read) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if line.read(&mut byte).ok()? == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    Some(head)
}

/// Reads one request with its body.
pub fn request(line: &mut impl Read) -> Option<Vec<u8>> {
    let mut request = head(line)?;
    let text = String::from_utf8_lossy(&request).to_lowercase();
    let length = text.lines().find_map(|l| l.strip_prefix("content-length:"));
    let mut body = vec![0; length.map_or(0, |n| n.trim().parse().unwrap())];
    line.read_exact(&mut body).ok()?;
    request.append(&mut body);
    Some(request)
}
