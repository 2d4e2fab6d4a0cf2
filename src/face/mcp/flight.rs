//! The requests in flight. A second one under the same id is refused, and over HTTP a later message can cancel the first.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use rmcp::model::RequestId;

use super::weight::Weighed;
use crate::cancel::Cancel;

/// The most requests in flight. Each may hold a thread.
const COUNT_MAX: usize = 400;

/// What tells one request in flight from others: who sent it, as far as that is known, and its id.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    pub client: String,
    pub id: RequestId,
}

/// The requests in flight. All clones are the same.
#[derive(Clone, Default)]
pub struct Flights(Arc<Mutex<Open>>);

#[derive(Default)]
struct Open {
    last: u64,
    by_key: HashMap<Key, Vec<(u64, Cancel)>>,
}

/// A request that is in flight until this is dropped, with its message.
pub struct Flight {
    flights: Flights,
    key: Key,
    number: u64,
    cancel: Cancel,
    _weighed: Weighed,
}

impl Flights {
    /// Adds a request. Nothing if another one has its key, or too many are in flight.
    pub fn enter(&self, key: Key, weighed: Weighed) -> Option<Arc<Flight>> {
        let is_free = {
            let open = self.0.lock();
            !open.by_key.contains_key(&key) && open.by_key.len() < COUNT_MAX
        };
        is_free.then(|| self.join(key, weighed))
    }

    /// Adds a request of a client that cannot be told from others: another one may have its key.
    pub fn join(&self, key: Key, weighed: Weighed) -> Arc<Flight> {
        let cancel = Cancel::new();
        let mut open = self.0.lock();
        open.last += 1;
        let number = open.last;
        open.by_key.entry(key.clone()).or_default().push((number, cancel.clone()));
        Arc::new(Flight { flights: self.clone(), key, number, cancel, _weighed: weighed })
    }

    /// Cancels what has this key.
    pub fn cancel(&self, key: &Key) {
        let cancels = self.0.lock().by_key.get(key).cloned().unwrap_or_default();
        for (_, cancel) in cancels {
            cancel.cancel();
        }
    }
}

impl Flight {
    /// What ends the request.
    pub fn handle(&self) -> &Cancel {
        &self.cancel
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let mut open = self.flights.0.lock();
        if let Some(same) = open.by_key.get_mut(&self.key) {
            same.retain(|(number, _)| *number != self.number);
            if same.is_empty() {
                open.by_key.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m12_an_id_is_taken_until_its_request_has_ended_and_only_by_its_client() {
        let flights = Flights::default();
        let key = |client: &str| Key { client: client.into(), id: RequestId::Number(7) };
        let first = flights.enter(key("a"), Weighed::default()).unwrap();
        assert!(flights.enter(key("a"), Weighed::default()).is_none());
        let other = flights.enter(key("b"), Weighed::default()).unwrap();
        let twin = flights.join(key("a"), Weighed::default());
        flights.cancel(&key("a"));
        let cancelled = [&first, &other, &twin].map(|flight| flight.handle().is_cancelled());
        assert_eq!(cancelled, [true, false, true]);
        drop(first);
        assert!(flights.enter(key("a"), Weighed::default()).is_none(), "its twin is in flight");
        drop(twin);
        assert!(flights.enter(key("a"), Weighed::default()).is_some());
        drop(other);
        assert!(flights.0.lock().by_key.is_empty());
    }
}
