//! Sentences of Go about bodies that are no JSON.

/// Deepest nesting that Go reads.
const DEEPEST: usize = 10_000;

/// Returns the error of Go for a text, if it is no JSON. The time is linear, and the depth does not use the stack.
///
/// ```
/// use object_patches::syntax_error;
/// assert_eq!(syntax_error(b"{}"), None);
/// assert_eq!(syntax_error(b"[1,]").as_deref(), Some("invalid character ']' looking for beginning of value"));
/// ```
#[must_use]
pub fn syntax_error(text: &[u8]) -> Option<String> {
    let mut scan = Scan { text, at: 0 };
    scan.document().err()
}

struct Scan<'t> {
    text: &'t [u8],
    at: usize,
}

type Scanned = Result<(), String>;

/// Value that has begun: a list, or an object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    List,
    Object,
}

impl Scan<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn spaces(&mut self) -> Option<u8> {
        while self.peek().is_some_and(|byte| b" \t\r\n".contains(&byte)) {
            self.at = self.at.saturating_add(1);
        }
        self.peek()
    }

    fn step(&mut self) {
        self.at = self.at.saturating_add(1);
    }

    fn invalid<T>(&self, context: &str) -> Result<T, String> {
        match self.peek() {
            None => Err("unexpected end of JSON input".to_owned()),
            Some(byte) => Err(format!("invalid character {} {context}", quoted(byte))),
        }
    }

    fn document(&mut self) -> Scanned {
        let mut open: Vec<Open> = Vec::new();
        loop {
            self.spaces();
            self.begin(&mut open)?;
            // A value has ended: so do those around it, as far as they do.
            loop {
                let next = self.spaces();
                match (open.last(), next) {
                    (None, None) => return Ok(()),
                    (None, _) => return self.invalid("after top-level value"),
                    (Some(Open::List), Some(b']')) | (Some(Open::Object), Some(b'}')) => {
                        self.step();
                        open.pop();
                    }
                    (Some(kind), Some(b',')) => {
                        let kind = *kind;
                        self.step();
                        if kind == Open::Object {
                            self.key()?;
                        }
                        break;
                    }
                    (Some(Open::List), _) => return self.invalid("after array element"),
                    (Some(Open::Object), _) => return self.invalid("after object key:value pair"),
                }
            }
        }
    }

    /// Reads a value up to its end, or up to the first value in it.
    fn begin(&mut self, open: &mut Vec<Open>) -> Scanned {
        loop {
            let kind = match self.spaces() {
                Some(b'{') => Open::Object,
                Some(b'[') => Open::List,
                _ => return self.scalar(),
            };
            self.step();
            match (kind, self.spaces()) {
                (Open::Object, Some(b'}')) | (Open::List, Some(b']')) => {
                    self.step();
                    return Ok(());
                }
                _ if open.len() >= DEEPEST => return Err("exceeded max depth".to_owned()),
                (Open::Object, _) => self.key()?,
                (Open::List, _) => {}
            }
            open.push(kind);
        }
    }

    fn key(&mut self) -> Scanned {
        if self.spaces() != Some(b'"') {
            return self.invalid("looking for beginning of object key string");
        }
        self.string()?;
        if self.spaces() != Some(b':') {
            return self.invalid("after object key");
        }
        self.step();
        Ok(())
    }

    fn scalar(&mut self) -> Scanned {
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b't') => self.literal("true"),
            Some(b'f') => self.literal("false"),
            Some(b'n') => self.literal("null"),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.invalid("looking for beginning of value"),
        }
    }

    fn literal(&mut self, word: &str) -> Scanned {
        for letter in word.bytes() {
            if self.peek() != Some(letter) {
                return self.invalid(&format!("in literal {word} (expecting {})", quoted(letter)));
            }
            self.step();
        }
        Ok(())
    }

    fn string(&mut self) -> Scanned {
        self.step();
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.step();
                    return Ok(());
                }
                Some(b'\\') => {
                    self.step();
                    self.escape()?;
                }
                Some(0x20..) => self.step(),
                _ => return self.invalid("in string literal"),
            }
        }
    }

    fn escape(&mut self) -> Scanned {
        match self.peek() {
            Some(b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"') => self.step(),
            Some(b'u') => {
                self.step();
                for _ in 0..4 {
                    if !self.peek().is_some_and(|byte| byte.is_ascii_hexdigit()) {
                        return self.invalid("in \\u hexadecimal character escape");
                    }
                    self.step();
                }
            }
            _ => return self.invalid("in string escape code"),
        }
        Ok(())
    }

    fn digits(&mut self, context: &str) -> Scanned {
        if !self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            return self.invalid(context);
        }
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.step();
        }
        Ok(())
    }

    fn number(&mut self) -> Scanned {
        if self.peek() == Some(b'-') {
            self.step();
        }
        match self.peek() {
            // Nothing of the whole part follows a zero.
            Some(b'0') => self.step(),
            _ => self.digits("in numeric literal")?,
        }
        if self.peek() == Some(b'.') {
            self.step();
            self.digits("after decimal point in numeric literal")?;
        }
        if self.peek().is_some_and(|byte| byte.eq_ignore_ascii_case(&b'e')) {
            self.step();
            if self.peek().is_some_and(|byte| b"+-".contains(&byte)) {
                self.step();
            }
            self.digits("in exponent of numeric literal")?;
        }
        Ok(())
    }
}

/// Returns a byte as Go quotes it: as the character of its number.
fn quoted(byte: u8) -> String {
    match byte {
        b'\'' => "'\\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        b'\\' => "'\\\\'".to_owned(),
        0x07 => "'\\a'".to_owned(),
        0x08 => "'\\b'".to_owned(),
        0x0c => "'\\f'".to_owned(),
        0x0b => "'\\v'".to_owned(),
        b'\n' => "'\\n'".to_owned(),
        b'\r' => "'\\r'".to_owned(),
        b'\t' => "'\\t'".to_owned(),
        0..0x20 | 0x7f => format!("'\\x{byte:02x}'"),
        0x80..=0xa0 | 0xad => format!("'\\u{byte:04x}'"),
        _ => format!("'{}'", char::from(byte)),
    }
}
