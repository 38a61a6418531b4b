//! Operators and functions that look at a part of their arguments only, and indices: operations of a program.

use super::function::functions;

functions! { meter;
    "_&&_" { "(bool, bool) -> bool" Control; }
    "_||_" { "(bool, bool) -> bool" Control; }
    "_?_:_" { "(bool, A, A) -> A" Control; }
    "@not_strictly_false" { "(bool) -> bool" One; }
    "or" { "optional(A).(optional(A)) -> optional(A)" Fallback; }
    "orValue" { "optional(A).(A) -> A" Fallback; }
    "_[_]" {
        "(list(A), int) -> A; (map(A, B), A) -> B" Index;
        "(optional(list(A)), int) -> optional(A); (optional(map(A, B)), A) -> optional(B)" Index;
    }
    "_[?_]" {
        "(list(A), int) -> optional(A); (optional(list(A)), int) -> optional(A)" One;
        "(map(A, B), A) -> optional(B); (optional(map(A, B)), A) -> optional(B)" One;
    }
}
