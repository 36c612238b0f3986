use std::time::Duration;

use config::{Value, ValueKind};

/// What stands somewhere in the configuration, and where.
pub(super) type Parsed<T> = Result<T, String>;

/// A duration as people write it: `10s`, `1m 30s`, `500ms`. The error says what to write.
///
/// ```
/// use std::time::Duration;
///
/// assert_eq!(coordkit::parse_duration("1m 30s"), Ok(Duration::from_secs(90)));
/// assert!(coordkit::parse_duration("10").unwrap_err().contains("10s"));
/// ```
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return Err(format!(
            "{text} has no unit; write {text}s for seconds, or {text}ms for milliseconds"
        ));
    }
    let duration = humantime::parse_duration(text)
        .map_err(|error| format!("{text:?} is no duration ({error}); write for example 10s or 500ms"))?;
    if duration > LONGEST {
        return Err(format!("{text} is longer than a year, which cannot be meant"));
    }
    Ok(duration)
}

const LONGEST: Duration = Duration::from_secs(366 * 86_400);

pub(super) fn text(value: Value) -> Parsed<String> {
    match value.kind {
        ValueKind::String(text) if text.is_empty() => Err("it is empty; leave it out instead".into()),
        ValueKind::String(text) => Ok(text),
        _ => Err("it must be a text in quotes".into()),
    }
}

pub(super) fn duration(value: Value) -> Parsed<Duration> {
    match value.kind {
        ValueKind::String(text) => parse_duration(&text),
        ValueKind::I64(number) => parse_duration(&number.to_string()),
        ValueKind::Float(number) => parse_duration(&number.to_string()),
        _ => Err("it must be a duration in quotes, for example \"10s\"".into()),
    }
}

pub(super) fn boolean(value: Value) -> Parsed<bool> {
    match &value.kind {
        ValueKind::Boolean(boolean) => Ok(*boolean),
        ValueKind::String(text) if text == "true" || text == "1" => Ok(true),
        ValueKind::String(text) if text == "false" || text == "0" => Ok(false),
        _ => Err("it must be true or false".into()),
    }
}

pub(super) fn number(value: Value) -> Parsed<f64> {
    let wrong = || "it must be a number".to_owned();
    match &value.kind {
        ValueKind::String(text) => text.trim().parse().map_err(|_| wrong()),
        ValueKind::Float(number) => Ok(*number),
        ValueKind::I64(_) => value.into_float().map_err(|_| wrong()),
        _ => Err(wrong()),
    }
}
