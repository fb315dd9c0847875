//! Messages of agents, front ends and editors.

use alongside_protocol::Request;
use alongside_wire::content_length::{read_frame, write_frame};
use alongside_wire::rpc::{self, Envelope, Message, Payload};
use alongside_wire::sse::SseReader;
use tokio::io::BufReader;

/// Small, so that the limit is reached.
const LIMIT: usize = 512;

/// The body of a request to the agents' port: an error is a valid response, and a request can be answered.
pub fn json_rpc_body(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let answer = |message: &Result<Message<'_>, rpc::InvalidMessage<'_>>| match message {
        Ok(Message::Request(request)) => Some(request.response(&())),
        Ok(_) => None,
        Err(invalid) => Some(invalid.to_response()),
    };
    let answers = match Payload::parse_strict(text) {
        Ok(Payload::One(message)) => vec![answer(&Ok(message))],
        Ok(Payload::Batch(messages)) => messages.iter().map(answer).collect(),
        Err(invalid) => vec![Some(invalid.to_response())],
    };
    for answer in answers.into_iter().flatten() {
        let envelope = Envelope::parse(&answer).unwrap_or_else(|_| panic!("{answer}"));
        assert!(envelope.is_response(), "{answer}");
    }
}

/// A message of a front end: what is understood is understood in the same way after it is written again.
pub fn front_message(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(Message::Request(request)) = Message::parse(text) else {
        return;
    };
    let Ok(call) = rpc::parse_call::<Request>(&request.method, request.params) else {
        return;
    };
    let written = rpc::write_call(Some(1), &call).unwrap();
    let Ok(Message::Request(again)) = Message::parse(&written) else {
        panic!("{written}")
    };
    assert_eq!(rpc::parse_call::<Request>(&again.method, again.params).unwrap(), call);
}

/// The frames of an editor: the same however they arrive, never over the limit, and the same after they are written again.
pub fn lsp_frame(bytes: &[u8]) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let read_all = |capacity| {
        runtime.block_on(async {
            let mut input = BufReader::with_capacity(capacity, bytes);
            let mut frames = Vec::new();
            loop {
                match read_frame(&mut input, LIMIT).await {
                    Ok(Some(frame)) => frames.push(frame),
                    Ok(None) => return (frames, true),
                    Err(_) => return (frames, false),
                }
            }
        })
    };
    let (frames, is_whole) = read_all(8192);
    assert_eq!((frames.clone(), is_whole), read_all(1));
    for frame in &frames {
        assert!(frame.len() <= LIMIT);
        if let Ok(text) = std::str::from_utf8(frame) {
            let mut written = Vec::new();
            runtime.block_on(write_frame(&mut written, text)).unwrap();
            let again = runtime.block_on(read_frame(&mut &*written, LIMIT)).unwrap();
            assert_eq!(again.as_ref(), Some(frame));
        }
    }
}

/// The events of a daemon or companion: the same however they are cut into chunks, and never over the limit.
pub fn sse_reader(bytes: &[u8]) {
    let read_all = |chunk: usize| {
        let mut reader = SseReader::new(LIMIT);
        let mut events = Vec::new();
        for part in bytes.chunks(chunk) {
            let outcome = reader.push(part);
            while let Some(event) = reader.pop() {
                assert!(event.data.len() <= LIMIT + 1);
                events.push((event.id, event.data, event.name));
            }
            if outcome.is_err() {
                // A long event ends the stream; how much of the chunk before it was looked at is not promised.
                return None;
            }
        }
        // In between, an id without data may come before the event in front of it is popped, or after.
        Some((events, reader.last_event_id().map(str::to_owned), reader.retry()))
    };
    let whole = read_all(bytes.len().max(1));
    for chunk in [1, 3, 64] {
        if let (Some(whole), Some(parts)) = (&whole, read_all(chunk)) {
            assert_eq!(*whole, parts, "in chunks of {chunk}");
        }
    }
    assert_eq!(whole.is_some(), read_all(1).is_some());
}
