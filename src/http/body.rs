//! Reads the whole body of a request, in bounded memory and time.

use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use axum::http::header::EXPECT;
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;

/// The longest time for reading a body.
const WAIT: Duration = Duration::from_mins(1);

/// How long a body that is refused is read and dropped.
const DRAIN_WAIT: Duration = Duration::from_secs(5);

/// The extractor for a body of at most `BYTES_MAX` bytes.
#[derive(Debug)]
pub struct WholeBody<const BYTES_MAX: usize>(pub Bytes);

/// Why a body is refused. As a response it is plain text. A handler can use other words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyRefusal {
    /// The body is over the limit.
    TooLarge {
        /// Its length in bytes, if the sender declared it.
        declared: Option<u64>,
        /// The limit in bytes.
        bytes_max: usize,
    },
    /// The body broke off, for this reason.
    Broken(String),
    /// The body took longer than this.
    Slow(Duration),
}

impl<S: Send + Sync, const BYTES_MAX: usize> FromRequest<S> for WholeBody<BYTES_MAX> {
    type Rejection = BodyRefusal;

    async fn from_request(request: Request, _: &S) -> Result<Self, BodyRefusal> {
        let may_wait = request.headers().contains_key(EXPECT);
        whole(request.into_body(), BYTES_MAX, may_wait).await.map(Self)
    }
}

async fn whole(mut body: Body, bytes_max: usize, may_wait: bool) -> Result<Bytes, BodyRefusal> {
    let declared = body.size_hint().lower();
    if declared > u64::try_from(bytes_max).unwrap_or(u64::MAX) {
        // A sender that asks first has sent nothing yet. If we read the body, it would send everything.
        if !may_wait {
            drain(&mut body).await;
        }
        return Err(BodyRefusal::TooLarge { declared: Some(declared), bytes_max });
    }
    let read = tokio::time::timeout(WAIT, up_to(bytes_max, &mut body));
    match read.await.unwrap_or(Err(BodyRefusal::Slow(WAIT))) {
        Err(refusal @ BodyRefusal::TooLarge { .. }) => {
            drain(&mut body).await;
            Err(refusal)
        }
        read => read.map(Bytes::from),
    }
}

async fn up_to(bytes_max: usize, body: &mut Body) -> Result<Vec<u8>, BodyRefusal> {
    let mut held = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|e| BodyRefusal::Broken(e.to_string()))?;
        if let Ok(data) = frame.into_data() {
            if held.len() + data.len() > bytes_max {
                return Err(BodyRefusal::TooLarge { declared: None, bytes_max });
            }
            held.extend_from_slice(&data);
        }
    }
    Ok(held)
}

/// Reads a body and drops it, for a bounded time, so that its sender can read why it was refused.
pub async fn drain(body: &mut Body) {
    let all = async { while let Some(Ok(_)) = body.frame().await {} };
    let _ = tokio::time::timeout(DRAIN_WAIT, all).await;
}

impl IntoResponse for BodyRefusal {
    fn into_response(self) -> Response {
        match self {
            Self::TooLarge { bytes_max, .. } => {
                (StatusCode::PAYLOAD_TOO_LARGE, format!("the body is over the limit of {bytes_max} bytes\n"))
            }
            Self::Broken(why) => (StatusCode::BAD_REQUEST, format!("the body broke off: {why}\n")),
            Self::Slow(wait) => {
                (StatusCode::REQUEST_TIMEOUT, format!("the body took over {} s\n", wait.as_secs()))
            }
        }
        .into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEN: usize = 10;

    fn read(body: Body) -> Result<Bytes, BodyRefusal> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let request = Request::new(body);
        runtime.block_on(WholeBody::<TEN>::from_request(request, &())).map(|whole| whole.0)
    }

    #[test]
    fn a_body_is_read_up_to_its_limit_and_no_further() {
        assert_eq!(read(Body::empty()).unwrap(), "");
        assert_eq!(read(Body::from("0123456789")).unwrap(), "0123456789");
        let over = BodyRefusal::TooLarge { declared: Some(11), bytes_max: TEN };
        assert_eq!(read(Body::from("0123456789a")).unwrap_err(), over);
        assert_eq!(over.into_response().status(), StatusCode::PAYLOAD_TOO_LARGE);
    }
}
