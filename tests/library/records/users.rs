use ocx::error::Kind;
use ocx::name::Password;
use ocx::name::User;
use ocx::record::Users;
use ocx::repo::Repository;

use super::login;
use crate::support::{Fossil, Place, Server, ann, remote};

fn password(text: &str) -> Password {
    Password::parse(text).unwrap()
}

fn user(name: &str) -> User {
    User::parse(name).unwrap()
}

#[test]
fn plain_fossil_takes_the_users_that_were_made() {
    let place = Place::new();
    let users = Users::of(&place.repository);
    let bob = user("bob");
    users.create(&bob, "ggio", "Bob <bob@example.org>", Some(&password("sécret 😀")), &ann()).unwrap();
    for &fossil in Fossil::each() {
        assert!(place.by(fossil, &["user", "list"]).contains("Bob <bob@example.org>"));
        assert_eq!(place.by(fossil, &["user", "capabilities", "bob"]), "gio\n");
    }
    users.set_capabilities(&bob, "go", &ann()).unwrap();
    assert_eq!(place.fossil(&["user", "capabilities", "bob"]), "go\n");
    let shown = format!("{:?}", users.list().unwrap());
    assert!(shown.contains("bob") && !shown.contains("sécret"));
    users.remove(&bob, &ann()).unwrap();
    assert!(!place.fossil(&["user", "list"]).contains("bob"));
    place.assert_whole();
}

#[test]
fn a_plain_server_takes_the_password_that_was_set() {
    let place = Place::new();
    let users = Users::of(&place.repository);
    let bob = login(&place, "bob", "gio");
    users.set_password(&bob, &password("second"), &ann()).unwrap();
    for &fossil in Fossil::each() {
        let server = Server::start(fossil, place.dir.path(), place.repository.path());
        let there = place.dir.path().join(format!("{fossil:?}.fossil"));
        Repository::clone_from(&remote(&server.url, "bob:second"), &there, &bob).unwrap();
        let refused =
            Repository::clone_from(&remote(&server.url, "bob:pw"), &place.dir.path().join("no.fossil"), &bob);
        assert_eq!(refused.unwrap_err().kind(), Kind::LoginFailed);
    }
}

#[test]
fn a_password_is_checked_as_fossil_does() {
    let place = Place::new();
    let users = Users::of(&place.repository);
    let bob = login(&place, "bob", "io");
    let opens = |text: &str| users.check(&bob, &password(text)).unwrap();
    assert!(opens("pw") && !opens("PW") && !opens("pw "));
    place.fossil(&["user", "password", "bob", "by fossil"]);
    assert!(opens("by fossil") && !opens("pw"));
    users.set_password(&bob, &password("by ocx"), &ann()).unwrap();
    assert!(opens("by ocx"));
    // What is stored does not open it.
    let db = rusqlite::Connection::open(place.repository.path()).unwrap();
    let stored: String = db.query_row("SELECT pw FROM user WHERE login='bob'", [], |row| row.get(0)).unwrap();
    assert!(stored.len() == 40 && !opens(&stored));
    db.execute("UPDATE user SET pw='plain' WHERE login='bob'", []).unwrap();
    assert!(opens("plain"));
    db.execute("UPDATE user SET info='expires 2020-01-01' WHERE login='bob'", []).unwrap();
    assert!(!opens("plain"));
    db.execute("UPDATE user SET info='expires 2999-01-01' WHERE login='bob'", []).unwrap();
    assert!(opens("plain"));
    db.execute("UPDATE user SET cap='' WHERE login='bob'", []).unwrap();
    assert!(!opens("plain"));
    assert!(!users.check(&user("nobody"), &password("x")).unwrap());
    assert!(!users.check(&user("zed"), &password("x")).unwrap());
}

#[test]
fn a_rename_takes_the_password_along_only_when_it_is_given() {
    let place = Place::new();
    let users = Users::of(&place.repository);
    let bob = login(&place, "bob", "io");
    users.rename(&bob, &user("rob"), Some(&password("pw")), &ann()).unwrap();
    assert!(users.check(&user("rob"), &password("pw")).unwrap());
    users.rename(&user("rob"), &user("Rob"), None, &ann()).unwrap();
    assert!(!users.check(&user("Rob"), &password("pw")).unwrap());
    let renamed = users.list().unwrap().into_iter().find(|login| login.name == "Rob").unwrap();
    assert_eq!((renamed.caps.as_str(), renamed.has_password), ("io", false));
    assert!(place.by(Fossil::Reference, &["user", "list"]).contains("Rob"));
}

#[test]
fn what_makes_no_user_is_refused() {
    let place = Place::new();
    let users = Users::of(&place.repository);
    let bob = login(&place, "bob", "io");
    let create =
        |name: &str, caps: &str, by: &User| users.create(&user(name), caps, "", None, by).unwrap_err().kind();
    assert_eq!(create("bob", "i", &ann()), Kind::Exists);
    assert_eq!(create("BOB", "i", &ann()), Kind::Exists);
    assert_eq!(create("nobody", "i", &ann()), Kind::Invalid);
    assert_eq!(create("beef", "i", &ann()), Kind::Invalid);
    assert_eq!(create("eve", "!!", &ann()), Kind::Invalid);
    assert_eq!(create("eve", "i", &user("zed")), Kind::NotFound);
    let e = users.create(&user("eve"), "i", "Eve\nroot  Boss", None, &ann()).unwrap_err();
    assert_eq!(e.kind(), Kind::Invalid);
    assert_eq!(users.set_capabilities(&bob, "!!", &ann()).unwrap_err().kind(), Kind::Invalid);
    let zed = user("zed");
    assert_eq!(users.set_capabilities(&zed, "i", &ann()).unwrap_err().kind(), Kind::NotFound);
    assert_eq!(users.set_password(&zed, &password("x"), &ann()).unwrap_err().kind(), Kind::NotFound);
    assert_eq!(
        users.set_password(&user("reader"), &password("x"), &ann()).unwrap_err().kind(),
        Kind::Invalid
    );
    assert_eq!(users.rename(&zed, &user("eve"), None, &ann()).unwrap_err().kind(), Kind::NotFound);
    assert_eq!(users.rename(&bob, &ann(), None, &ann()).unwrap_err().kind(), Kind::Exists);
    assert_eq!(users.remove(&zed, &ann()).unwrap_err().kind(), Kind::NotFound);
    assert_eq!(users.remove(&ann(), &ann()).unwrap_err().kind(), Kind::Denied);
    assert_eq!(users.set_capabilities(&ann(), "i", &ann()).unwrap_err().kind(), Kind::Denied);
    assert_eq!(place.sql("SELECT count(*) FROM user WHERE cap GLOB '*s*'"), 1);
}
