//! The messages of OTLP 1 that a push of spans needs (opentelemetry/proto/collector/trace/v1 and trace/v1).
//!
//! Invariant: the number of each field is that of the published definitions. Deliberately not here: fields that the gateway does not send.

/// `ExportTraceServiceRequest`: the body of a push.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ExportRequest {
    #[prost(message, repeated, tag = "1")]
    pub(super) resource_spans: Vec<ResourceSpans>,
}

/// `ExportTraceServiceResponse`: the body of the collector's answer.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ExportResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) partial_success: Option<PartialSuccess>,
}

/// `ExportTracePartialSuccess`, without the collector's text.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct PartialSuccess {
    #[prost(int64, tag = "1")]
    pub(super) rejected_spans: i64,
}

/// `ResourceSpans`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    pub(super) resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    pub(super) scope_spans: Vec<ScopeSpans>,
}

/// `Resource`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Resource {
    #[prost(message, repeated, tag = "1")]
    pub(super) attributes: Vec<KeyValue>,
}

/// `ScopeSpans`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ScopeSpans {
    #[prost(message, repeated, tag = "2")]
    pub(super) spans: Vec<Span>,
}

/// `Span`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Span {
    /// 16 bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub(super) trace_id: Vec<u8>,
    /// 8 bytes.
    #[prost(bytes = "vec", tag = "2")]
    pub(super) span_id: Vec<u8>,
    /// 8 bytes, or none for a root.
    #[prost(bytes = "vec", tag = "4")]
    pub(super) parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    pub(super) name: String,
    #[prost(enumeration = "SpanKind", tag = "6")]
    pub(super) kind: i32,
    /// Nanoseconds since 1970.
    #[prost(fixed64, tag = "7")]
    pub(super) start_time_unix_nano: u64,
    /// Nanoseconds since 1970.
    #[prost(fixed64, tag = "8")]
    pub(super) end_time_unix_nano: u64,
    #[prost(message, repeated, tag = "9")]
    pub(super) attributes: Vec<KeyValue>,
    #[prost(message, optional, tag = "15")]
    pub(super) status: Option<Status>,
}

/// `Span.SpanKind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, prost::Enumeration)]
#[repr(i32)]
pub(super) enum SpanKind {
    Unspecified = 0,
    Internal = 1,
    Server = 2,
    Client = 3,
}

/// `Status`, without a text.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Status {
    #[prost(enumeration = "StatusCode", tag = "3")]
    pub(super) code: i32,
}

/// `Status.StatusCode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, prost::Enumeration)]
#[repr(i32)]
pub(super) enum StatusCode {
    Unset = 0,
    Error = 2,
}

/// `KeyValue`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct KeyValue {
    #[prost(string, tag = "1")]
    pub(super) key: String,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<AnyValue>,
}

/// `AnyValue`, of which the gateway sends only texts.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct AnyValue {
    /// A member of the message's `oneof`: it is written even if the text is empty.
    #[prost(string, optional, tag = "1")]
    pub(super) string_value: Option<String>,
}

impl KeyValue {
    /// An attribute.
    pub(super) fn new(key: &'static str, value: &str) -> Self {
        Self {
            key: key.to_owned(),
            value: Some(AnyValue {
                string_value: Some(value.to_owned()),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message;

    /// The bytes are those of the published definitions, by hand: a wrong tag would decode to another field at the collector.
    #[test]
    fn the_tags_are_the_published_ones() {
        let span = Span {
            trace_id: vec![1],
            span_id: vec![2],
            parent_span_id: vec![3],
            name: "a".to_owned(),
            kind: SpanKind::Client.into(),
            start_time_unix_nano: 4,
            end_time_unix_nano: 5,
            attributes: vec![KeyValue::new("k", "v")],
            status: Some(Status {
                code: StatusCode::Error.into(),
            }),
        };
        let expected = [
            b"\x0a\x01\x01\x12\x01\x02\x22\x01\x03\x2a\x01a\x30\x03".as_slice(),
            b"\x39\x04\0\0\0\0\0\0\0\x41\x05\0\0\0\0\0\0\0",
            b"\x4a\x08\x0a\x01k\x12\x03\x0a\x01v\x7a\x02\x18\x02",
        ];
        assert_eq!(span.encode_to_vec(), expected.concat());
        let request = ExportRequest {
            resource_spans: vec![ResourceSpans {
                resource: Some(Resource { attributes: vec![] }),
                scope_spans: vec![ScopeSpans {
                    spans: vec![Span::default()],
                }],
            }],
        };
        assert_eq!(request.encode_to_vec(), b"\x0a\x06\x0a\x00\x12\x02\x12\x00");
        let answer = ExportResponse::decode(b"\x0a\x05\x08\x02\x12\x01x".as_slice()).unwrap();
        assert_eq!(answer.partial_success.unwrap().rejected_spans, 2);
    }
}
