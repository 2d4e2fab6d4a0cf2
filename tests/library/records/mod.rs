//! Wiki, unversioned files, forum, tags and users: what OCX writes, plain Fossil reads, and the reverse.

mod derived;
mod forum;
mod tags;
mod unversioned;
mod users;
mod wiki;

use crate::support::{Place, ann};
use ocx::name::Password;
use ocx::name::User;
use ocx::record::Users;

/// A login of the repository with these capabilities.
fn login(place: &Place, name: &str, caps: &str) -> User {
    let user = User::parse(name).unwrap();
    let password = Password::parse("pw").unwrap();
    Users::of(&place.repository).create(&user, caps, "", Some(&password), &ann()).unwrap();
    user
}

/// The first column of a query, one row a line.
fn lines(place: &Place, sql: &str) -> Vec<String> {
    let db = rusqlite::Connection::open(place.repository.path()).unwrap();
    let mut query = db.prepare(sql).unwrap();
    query.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
}
