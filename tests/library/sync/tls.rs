//! https, kept lines and proxies.

use std::fs;

use ocx::error::Kind;
use ocx::repo::Repository;
use ocx::sync::{Connection, Outcome, Reach, Remote};

use super::cloned;
use crate::support::front::{Authority, Front};
use crate::support::{Fossil, ann, remote, served};

/// A remote over https, with a CA file or none.
fn secure(port: u16, ca: Option<&std::path::Path>) -> Remote {
    let connection = Connection::new(&Reach { ca_file: ca.map(Into::into), ..Reach::default() }).unwrap();
    Remote::parse(&format!("https://ann:secret@127.0.0.1:{port}/")).unwrap().over(connection)
}

#[test]
fn https_with_a_ca_of_ones_own_carries_clone_push_and_pull_on_one_line() {
    for &fossil in Fossil::each() {
        let (dir, _path, server) = served(fossil);
        let authority = Authority::new("own");
        let ca = dir.path().join("ca.pem");
        fs::write(&ca, &authority.pem).unwrap();
        let front = Front::secure(server.port, authority.server("127.0.0.1", 2020, 2090));
        let remote = secure(front.port, Some(&ca));
        let place = cloned(&remote);
        for text in ["one\n", "two\n"] {
            place.write("a.txt", text);
            place.check_in(text.trim(), None).unwrap();
            let sent = place.repository.push(&remote).unwrap();
            assert_eq!(sent, Outcome::Sent { check_ins: 1, artifacts: 2 });
        }
        assert_eq!(place.repository.pull(&remote).unwrap(), Outcome::NothingToReceive);
        assert!(front.requests() >= 7, "{}", front.requests());
        assert_eq!(front.lines(), 1, "every call went over the line of the first");
        assert_eq!(cloned(&server.remote("ann:secret")).check_ins(), place.check_ins());
    }
}

#[test]
fn a_server_without_tls_keeps_its_line_over_two_pushes_as_well() {
    let (_dir, _path, server) = served(Fossil::Own);
    let front = Front::before(server.port);
    let connection = Connection::new(&Reach::default()).unwrap();
    let remote = remote(&front.url(), "ann:secret").over(connection);
    let place = cloned(&remote);
    for text in ["one\n", "two\n"] {
        place.write("a.txt", text);
        place.check_in(text.trim(), None).unwrap();
        place.repository.push(&remote).unwrap();
    }
    assert_eq!(front.lines(), 1);
}

#[test]
fn a_certificate_that_proves_nothing_is_untrusted_and_nothing_is_sent() {
    let (dir, _path, server) = served(Fossil::Reference);
    let place = cloned(&server.remote("ann:secret"));
    place.write("a.txt", "one\n");
    place.check_in("first", None).unwrap();
    let (own, other) = (Authority::new("own"), Authority::new("other"));
    let ca = dir.path().join("ca.pem");
    fs::write(&ca, &own.pem).unwrap();
    for (config, ca, words) in [
        (other.server("127.0.0.1", 2020, 2090), Some(&*ca), "issuer"),
        (own.server("127.0.0.1", 2020, 2090), None, "issuer"),
        (own.server("other.example", 2020, 2090), Some(&*ca), "another name"),
        (own.server("127.0.0.1", 2000, 2010), Some(&*ca), "expired"),
        (own.server("127.0.0.1", 2080, 2090), Some(&*ca), "not valid yet"),
    ] {
        let front = Front::secure(server.port, config);
        let remote = secure(front.port, ca);
        let e = place.repository.push(&remote).unwrap_err();
        assert_eq!(e.kind(), Kind::Untrusted, "{words}: {e}");
        assert!(e.to_string().contains(words), "{words}: {e}");
        assert!(!format!("{e:?}").contains("secret"));
        assert_eq!(place.repository.pull(&remote).unwrap_err().kind(), Kind::Untrusted);
        let target = dir.path().join("c.fossil");
        let e = Repository::clone_from(&remote, &target, &ann()).unwrap_err();
        assert_eq!(e.kind(), Kind::Untrusted);
        assert!(!target.exists());
        assert_eq!(front.requests(), 0);
    }
    let sent = place.repository.push(&server.remote("ann:secret")).unwrap();
    assert_eq!(sent, Outcome::Sent { check_ins: 1, artifacts: 2 });
}

#[test]
fn a_port_without_tls_is_no_trusted_one() {
    let (_dir, _path, server) = served(Fossil::Reference);
    let place = cloned(&server.remote("ann:secret"));
    let e = place.repository.pull(&secure(server.port, None)).unwrap_err();
    assert!(matches!(e.kind(), Kind::Untrusted | Kind::Unreachable), "{e:?}");
}

#[test]
fn a_proxy_is_used_where_one_is_named() {
    let (_dir, _path, server) = served(Fossil::Own);
    // ann:tunnel
    let proxy = Front::proxy("Basic YW5uOnR1bm5lbA==");
    let through = |login: &str| {
        let url = format!("http://{login}127.0.0.1:{}", proxy.port);
        let reach = Reach { proxy: Some(url), ..Reach::default() };
        server.remote("ann:secret").over(Connection::new(&reach).unwrap())
    };
    let place = cloned(&through("ann:tunnel@"));
    place.write("a.txt", "one\n");
    place.check_in("first", None).unwrap();
    let before = proxy.requests();
    assert!(before > 0);
    for login in ["", "ann:wrong@"] {
        let e = place.repository.push(&through(login)).unwrap_err();
        assert_eq!(e.kind(), Kind::LoginFailed, "{e:?}");
        assert!(!format!("{e:?}").contains("wrong"));
    }
    assert_eq!(
        place.repository.push(&through("ann:tunnel@")).unwrap().to_string(),
        "sent 1 check-ins, 2 artifacts"
    );
    assert!(proxy.requests() > before);
    drop(proxy);
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let reach = Reach { proxy: Some(format!("http://127.0.0.1:{closed}")), ..Reach::default() };
    let remote = server.remote("ann:secret").over(Connection::new(&reach).unwrap());
    assert_eq!(place.repository.pull(&remote).unwrap_err().kind(), Kind::Unreachable);
}

#[test]
fn a_redirect_to_the_same_hosts_https_is_followed() {
    let (dir, _path, server) = served(Fossil::Reference);
    let authority = Authority::new("own");
    let ca = dir.path().join("ca.pem");
    fs::write(&ca, &authority.pem).unwrap();
    let front = Front::secure(server.port, authority.server("127.0.0.1", 2020, 2090));
    let port = front.port;
    let plain_front = Front::new(move |mut line, _| {
        use std::io::Write;
        while crate::support::front::request(&mut line).is_some() {
            let reply = format!(
                "HTTP/1.1 302 Go\r\nLocation: https://127.0.0.1:{port}/\r\nContent-Length: 0\r\n\r\n"
            );
            if line.write_all(reply.as_bytes()).is_err() {
                return;
            }
        }
    });
    let reach = Reach { ca_file: Some(ca), ..Reach::default() };
    let remote = remote(&plain_front.url(), "ann:secret").over(Connection::new(&reach).unwrap());
    assert_eq!(cloned(&remote).check_ins(), 1);
    assert!(front.requests() > 0);
}
