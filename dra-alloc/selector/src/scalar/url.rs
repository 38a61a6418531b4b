//! URLs, as Go reads them.

use std::fmt;

use dra_attrs::Quoted;

use super::digits::hexadecimal;

/// Parts of a URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Url {
    scheme: String,
    /// Rest of a URL such as `mailto:someone`.
    opaque: Option<String>,
    user: Option<String>,
    host: String,
    /// Path as it was written.
    path: String,
    query: Option<String>,
    fragment: Option<String>,
}

/// Says why a text is no URL.
pub(crate) fn request_problem(text: &str) -> Option<String> {
    let problem = Url::read(text, Reading::Request).err()?;
    Some(format!("parse {}: {problem}", Quoted(text)))
}

/// Place of a character in a URL: each allows other characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Host,
    Query,
    Other,
}

impl Url {
    /// Returns the number of bytes of all parts.
    pub(crate) fn len(&self) -> usize {
        let parts = [&self.opaque, &self.user, &self.query, &self.fragment];
        let optional: usize = parts.into_iter().flatten().map(String::len).sum();
        self.scheme.len() + self.host.len() + self.path.len() + optional
    }

    /// Parses a URL; the error is that of Go's parser.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        Self::read(text, Reading::Request)?;
        let (text, fragment) = text.split_once('#').map_or((text, None), |(text, fragment)| (text, Some(fragment)));
        let mut url = Self::read(text, Reading::Reference)?;
        url.fragment =
            fragment.map(|fragment| unescape(fragment, Mode::Other).map(|_| fragment.to_owned())).transpose()?;
        Ok(url)
    }

    fn read(text: &str, reading: Reading) -> Result<Self, String> {
        if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
            return Err("net/url: invalid control character in URL".to_owned());
        }
        if text.is_empty() && reading == Reading::Request {
            return Err("empty url".to_owned());
        }
        let (scheme, rest) = split_scheme(text)?;
        let scheme = scheme.to_ascii_lowercase();
        let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query.to_owned())));
        let mut url = Self { scheme, path: rest.to_owned(), query, ..Self::default() };
        if text == "*" {
            return Ok(url);
        }
        if !rest.starts_with('/') {
            if !url.scheme.is_empty() {
                url.opaque = Some(rest.to_owned());
                url.path = String::new();
                return Ok(url);
            }
            if reading == Reading::Request {
                return Err("invalid URI for request".to_owned());
            }
            if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
                return Err("first path segment in URL cannot contain colon".to_owned());
            }
        }
        let has_authority = !url.scheme.is_empty() || (reading == Reading::Reference && !rest.starts_with("///"));
        if let Some(rest) = rest.strip_prefix("//").filter(|_| has_authority) {
            let end = rest.find('/').unwrap_or(rest.len());
            let (authority, path) = rest.split_at_checked(end).unwrap_or((rest, ""));
            path.clone_into(&mut url.path);
            url.set_authority(authority)?;
        }
        unescape(&url.path, Mode::Other)?;
        Ok(url)
    }

    fn set_authority(&mut self, authority: &str) -> Result<(), String> {
        let (user, host) = authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
        self.host = read_host(host)?;
        if let Some(user) = user {
            let is_valid = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
            if !user.chars().all(is_valid) {
                return Err("net/url: invalid userinfo".to_owned());
            }
            unescape(user, Mode::Other)?;
            self.user = Some(user.to_owned());
        }
        Ok(())
    }

    pub(crate) fn scheme(&self) -> &str {
        &self.scheme
    }

    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    pub(crate) fn host_and_port(&self) -> (&str, &str) {
        let (host, port) = match self.host.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => (host, port),
            _ => (self.host.as_str(), ""),
        };
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        (bare.unwrap_or(host), port)
    }

    /// Returns the parameters of the query: names and values. Pairs that can't be read are left out.
    pub(crate) fn parameters(&self) -> impl Iterator<Item = (String, String)> {
        let pairs = self.query.as_deref().unwrap_or_default().split('&');
        pairs.filter(|pair| !pair.is_empty() && !pair.contains(';')).filter_map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((unescape(name, Mode::Query).ok()?, unescape(value, Mode::Query).ok()?))
        })
    }

    /// Returns the path with what needs it escaped; a path that was written validly stays as it is.
    pub(crate) fn escaped_path(&self) -> String {
        let is_valid =
            |byte: u8| matches!(byte, b'[' | b']' | b'%') || b"!$&'()*+,;=:@/".contains(&byte) || is_unreserved(byte);
        if self.path.bytes().all(is_valid) {
            return self.path.clone();
        }
        let bytes = unescape(&self.path, Mode::Other).unwrap_or_default();
        escape(&bytes, |byte| is_unreserved(byte) || b"$&+,/:;=@".contains(&byte))
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.scheme.is_empty() {
            write!(f, "{}:", self.scheme)?;
        }
        if let Some(opaque) = &self.opaque {
            f.write_str(opaque)?;
        } else {
            if !self.host.is_empty() || self.user.is_some() || (!self.scheme.is_empty() && !self.path.is_empty()) {
                f.write_str("//")?;
            }
            if let Some(user) = &self.user {
                write!(f, "{user}@")?;
            }
            f.write_str(&escape(&self.host, |byte| !is_host_escaped(byte)))?;
            f.write_str(&self.escaped_path())?;
        }
        if let Some(query) = &self.query {
            write!(f, "?{query}")?;
        }
        if let Some(fragment) = &self.fragment {
            write!(f, "#{fragment}")?;
        }
        Ok(())
    }
}

/// Reading of a text: as the target of a request, which has no fragment and is absolute, or as any reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    Request,
    Reference,
}

fn split_scheme(text: &str) -> Result<(&str, &str), String> {
    for (at, character) in text.char_indices() {
        match character {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if at > 0 => {}
            ':' if at == 0 => return Err("missing protocol scheme".to_owned()),
            ':' => return Ok((text.get(..at).unwrap_or_default(), text.get(at + 1..).unwrap_or_default())),
            _ => break,
        }
    }
    Ok(("", text))
}

fn read_host(host: &str) -> Result<String, String> {
    let port = if host.starts_with('[') {
        let end = host.rfind(']').ok_or("missing ']' in host")?;
        host.get(end + 1..).unwrap_or_default()
    } else {
        host.rfind(':').and_then(|at| host.get(at..)).unwrap_or_default()
    };
    let digits = port.strip_prefix(':').unwrap_or(port);
    let is_valid = port.is_empty() || (port.starts_with(':') && digits.bytes().all(|byte| byte.is_ascii_digit()));
    if !is_valid {
        return Err(format!("invalid port {} after host", Quoted(port)));
    }
    unescape(host, Mode::Host)
}

const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~')
}

/// Returns true for bytes that a host has only escaped.
fn is_host_escaped(byte: u8) -> bool {
    !is_unreserved(byte) && !b"!$&'()*+,;=:[]<>\"".contains(&byte)
}

/// Replaces what is escaped.
fn unescape(text: &str, mode: Mode) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        match first {
            b'%' => {
                let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
                let is_number = |digits: &&str| digits.bytes().all(|byte| byte.is_ascii_hexdigit());
                let byte = digits.filter(is_number).and_then(|digits| u8::from_str_radix(digits, 16).ok());
                // A host has only bytes escaped that are no ASCII characters, and the sign itself.
                let allowed = byte.filter(|byte| mode != Mode::Host || *byte >= 0x80 || digits == Some("25"));
                let Some(byte) = allowed else {
                    let shown = [b"%", after.get(..after.len().min(2)).unwrap_or_default()].concat();
                    return Err(format!("invalid URL escape {}", Quoted(&String::from_utf8_lossy(&shown))));
                };
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            b'+' if mode == Mode::Query => bytes.push(b' '),
            byte if mode == Mode::Host && byte.is_ascii() && is_host_escaped(*byte) => {
                let shown = char::from(*byte).to_string();
                return Err(format!("invalid character {} in host name", Quoted(&shown)));
            }
            byte => bytes.push(*byte),
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn escape(text: &str, is_plain: impl Fn(u8) -> bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if is_plain(byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push('%');
            escaped.extend(hexadecimal(byte, b"0123456789ABCDEF"));
        }
    }
    escaped
}
